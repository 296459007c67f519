package v1alpha1

import (
	"fmt"
	"strconv"
	"strings"
)

// maxShards is how many shards a selection can be divided into.
const maxShards = 10_000

// ParseShard reads a shard, "2/5": the second of five. It fails when the text is anything else.
func ParseShard(shard string) (number, of int, err error) {
	before, after, _ := strings.Cut(shard, "/")
	number, notNumber := strconv.Atoi(before)
	of, notTotal := strconv.Atoi(after)
	if notNumber != nil || notTotal != nil || number < 1 || number > of || of > maxShards || fmt.Sprintf("%d/%d", number, of) != shard {
		return 0, 0, fmt.Errorf("shard %.60q: write it as 2/5, the second of five", shard)
	}
	return number, of, nil
}
