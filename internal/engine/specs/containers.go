package specs

import (
	"slices"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/ginkgo/v2/types"
	"k8s.io/apimachinery/pkg/util/sets"
)

// built are the files whose containers are built; none for all.
var built sets.Set[string]

// Ginkgo builds, orders and reports every spec of a program, also those that its filters leave out. With hundreds of behaviors, that takes as long
// as the rest of a worker's start.
var _ = ginkgo.AddTreeConstructionNodeArgsTransformer(
	func(kind types.NodeType, offset ginkgo.Offset, text string, args []any) (string, []any, []error) {
		if kind != types.NodeTypeContainer {
			return text, args, nil
		}
		location := types.NewCodeLocation(int(offset))
		for i := range args {
			switch arg := args[i].(type) {
			case types.CodeLocation: // takes precedence
				location = arg
			case func():
				args[i] = func() {
					if built.Len() == 0 || built.Has(location.FileName) {
						arg()
					}
				}
			}
		}
		return text, args, nil
	})

// BuildOnly leaves the containers of other files empty when Ginkgo builds the suite, unless there are no files.
func BuildOnly(files []string) { built = sets.New(files...) }

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
