package v1alpha1

import (
	"fmt"
	"strconv"
	"strings"
)

// maxShards bounds what a foreign report can make a reader count.
const maxShards = 10_000

// ParseShard reads which part of a selection is meant: "2/5" is the second of five. It fails on anything that is not
// written exactly so.
func ParseShard(shard string) (number, of int, err error) {
	before, after, _ := strings.Cut(shard, "/")
	number, _ = strconv.Atoi(before)
	of, _ = strconv.Atoi(after)
	if number < 1 || number > of || of > maxShards || fmt.Sprintf("%d/%d", number, of) != shard {
		return 0, 0, fmt.Errorf("%.60q is not a number of a number like 2/5, the second of five", shard)
	}
	return number, of, nil
}
