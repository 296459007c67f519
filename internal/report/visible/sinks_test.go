package visible_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const module = "../../.."

// sinks are the files that may escape: one for each format of output. All others pass text on as it is.
var sinks = []string{
	"internal/report/json.go", "internal/report/ctrf/ctrf.go", "internal/report/junit/junit.go", "internal/report/html/html.go",
	"internal/report/markdown/issue.go", "internal/report/markdown/markdown.go", "internal/report/markdown/history.go", "internal/report/otlp/otlp.go", "internal/claim/site/pages.go",
	"internal/cli/list.go", "internal/cli/preflight.go", "internal/cli/reports.go", "internal/cli/verify.go", // JSON on standard output
	"internal/progress/live.go", // draws on the terminal itself
}

// streams are the files that may use the streams of the process: Main, and processes whose output the runner reads.
var streams = []string{
	"cmd/runner/main.go", "internal/cli/cli.go", "internal/sys/reexec/reexec.go", "internal/engine/workers/worker.go", "conformance/processes.go",
}

// TestText_OnlyInSinks also requires that each listed file does what it is listed for.
func TestText_OnlyInSinks(t *testing.T) {
	escapes, prints := map[string]bool{}, map[string]bool{}
	for _, dir := range []string{"api", "cmd", "conformance", "fixtures", "framework", "internal", "model", "provider", "suites"} {
		err := filepath.WalkDir(filepath.Join(module, dir), func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			name, err := filepath.Rel(module, path)
			if file.Name.Name == "main" && !strings.HasPrefix(name, "cmd/") {
				return err // a tool of developers
			}
			ast.Inspect(file, func(node ast.Node) bool {
				switch selected := selectedBy(node); selected {
				case "visible.Text", "visible.Value", "visible.JSON":
					escapes[name] = true
				case "os.Stdout", "os.Stderr", "fmt.Print", "fmt.Printf", "fmt.Println":
					prints[name] = true
				}
				return true
			})
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	compare(t, "escape text", escapes, sinks)
	compare(t, "use the streams of the process", prints, streams)
}

// selectedBy returns a selector as text, such as os.Stdout; empty for other nodes.
func selectedBy(node ast.Node) string {
	selector, ok := node.(*ast.SelectorExpr)
	if !ok {
		return ""
	}
	from, ok := selector.X.(*ast.Ident)
	if !ok {
		return ""
	}
	return from.Name + "." + selector.Sel.Name
}

func compare(t *testing.T, what string, found map[string]bool, permitted []string) {
	t.Helper()
	for name := range found {
		if !slices.Contains(permitted, name) {
			t.Errorf("%s must not %s", name, what)
		}
	}
	for _, name := range permitted {
		if !found[name] {
			t.Errorf("%s does not %s any more: remove it from the list", name, what)
		}
	}
}
