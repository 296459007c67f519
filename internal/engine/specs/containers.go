package specs

import (
	"slices"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/ginkgo/v2/types"
)

// built are the files whose containers are built; nil for all.
var built map[string]bool

// Ginkgo builds, orders and reports every spec of a program, also those that its filters leave out. With hundreds of behaviors, that takes as long
// as the rest of a worker's start.
var _ = ginkgo.AddTreeConstructionNodeArgsTransformer(
	func(kind types.NodeType, offset ginkgo.Offset, text string, args []any) (string, []any, []error) {
		if kind != types.NodeTypeContainer {
			return text, args, nil
		}
		file := types.NewCodeLocation(int(offset)).FileName
		for i := range args {
			if body, ok := args[i].(func()); ok {
				args[i] = func() {
					if built == nil || built[file] {
						body()
					}
				}
			}
		}
		return text, args, nil
	})

// BuildOnly leaves the containers of other files empty when Ginkgo builds the suite.
func BuildOnly(files []string) {
	built = map[string]bool{}
	for _, file := range files {
		built[file] = true
	}
}

// FilesOf are the files with a spec's containers.
func FilesOf(spec types.SpecReport) []string {
	var files []string
	for _, container := range spec.ContainerHierarchyLocations {
		if !slices.Contains(files, container.FileName) {
			files = append(files, container.FileName)
		}
	}
	return files
}
