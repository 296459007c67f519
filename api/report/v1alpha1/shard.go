package v1alpha1

import (
	"fmt"
	"strconv"
	"strings"
)

// MaxShards is the largest number of shards of a run.
const MaxShards = 10_000

// ParseShard parses a part of a selection: "2/5" is the second of five. It fails on any other format.
func ParseShard(shard string) (number, of int, err error) {
	before, after, _ := strings.Cut(shard, "/")
	number, _ = strconv.Atoi(before)
	of, _ = strconv.Atoi(after)
	if number < 1 || number > of || of > MaxShards || fmt.Sprintf("%d/%d", number, of) != shard {
		return 0, 0, fmt.Errorf("invalid shard %.60q: it must be N/M, for example 2/5 for the second of five parts", shard)
	}
	return number, of, nil
}
