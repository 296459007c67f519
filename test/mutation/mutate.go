package main

import (
	"bytes"
	"errors"
	"fmt"
	"go/ast"
	"go/format"
	"go/parser"
	"go/token"
	"slices"
	"strings"
	"time"
)

// mutate adds mutants to a Go file: each function that a mutant changes is added once more in its changed form, and the original begins
// with a check whether to call that instead.
func mutate(source []byte, file string, mutants []Mutant) ([]byte, error) {
	functions, err := parse(source)
	if err != nil {
		return nil, fmt.Errorf("parse %s: %w", file, err)
	}
	var edits []edit
	var copies bytes.Buffer
	for _, function := range functions {
		asking := ""
		for _, mutant := range mutants {
			text, changed, err := changed(function, file, mutant)
			if err != nil {
				return nil, fmt.Errorf("insert %s into %s of %s: %w", mutant.Name, function.name(), file, err)
			}
			if !changed {
				continue
			}
			asking += function.dispatch(mutant)
			fmt.Fprintf(&copies, "\n// %s\n%s\n", mutant.Breaks, function.renamed(text, mutant))
		}
		if asking != "" {
			edits = append(edits, edit{function.bodyAt, 0, asking})
			edits = append(edits, function.naming...)
		}
	}
	if err := allChanged(functions, file, mutants); err != nil {
		return nil, err
	}
	result, err := format.Source(append(apply(source, edits), copies.Bytes()...))
	if err != nil {
		return nil, fmt.Errorf("insert mutants into %s: %w", file, err)
	}
	return result, nil
}

// edit replaces bytes of a file.
type edit struct {
	at, length int
	by         string
}

func apply(source []byte, edits []edit) []byte {
	slices.SortStableFunc(edits, func(a, b edit) int { return b.at - a.at })
	result := slices.Clone(source)
	for _, edit := range edits {
		result = slices.Replace(result, edit.at, edit.at+edit.length, []byte(edit.by)...)
	}
	return result
}

// function is a function of a file.
type function struct {
	decl *ast.FuncDecl
	// text is the whole function, and nameEnd the position in it after the name.
	text    string
	nameEnd int
	// bodyAt is the position in the file after the opening brace of the body.
	bodyAt int
	// receiver and arguments are the names of the parameters, and naming the edits that name unnamed ones.
	receiver  string
	arguments []string
	naming    []edit
}

func (f function) name() string { return f.decl.Name.Name }

// parse returns the functions of a file.
func parse(source []byte) ([]function, error) {
	files := token.NewFileSet()
	tree, err := parser.ParseFile(files, "", source, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	at := func(pos token.Pos) int { return files.Position(pos).Offset }
	var functions []function
	for _, declaration := range tree.Decls {
		decl, ok := declaration.(*ast.FuncDecl)
		if !ok || decl.Body == nil {
			continue
		}
		begin := at(decl.Pos())
		f := function{
			decl: decl, text: string(source[begin:at(decl.End())]),
			nameEnd: at(decl.Name.End()) - begin, bodyAt: at(decl.Body.Lbrace) + 1,
		}
		if decl.Recv != nil {
			f.receiver = f.nameParameters(decl.Recv, at, "mutantReceiver")[0]
		}
		f.arguments = f.nameParameters(decl.Type.Params, at, "mutantArgument")
		functions = append(functions, f)
	}
	return functions, nil
}

// nameParameters returns the names of parameters, and names unnamed ones.
func (f *function) nameParameters(list *ast.FieldList, at func(token.Pos) int, prefix string) []string {
	var names []string
	for _, field := range list.List {
		ending := ""
		if _, variadic := field.Type.(*ast.Ellipsis); variadic {
			ending = "..."
		}
		if len(field.Names) == 0 {
			name := fmt.Sprintf("%s%d", prefix, len(names))
			f.naming = append(f.naming, edit{at(field.Type.Pos()), 0, name + " "})
			names = append(names, name+ending)
		}
		for _, ident := range field.Names {
			name := ident.Name
			if name == "_" {
				name = fmt.Sprintf("%s%d", prefix, len(names))
				f.naming = append(f.naming, edit{at(ident.Pos()), 1, name})
			}
			names = append(names, name+ending)
		}
	}
	return names
}

// changed returns the text of a function with a mutant's changes.
func changed(f function, file string, mutant Mutant) (text string, is bool, err error) {
	text = f.text
	for _, change := range mutant.Changes {
		if change.File != file || change.Function != f.name() {
			continue
		}
		if text, err = replaceLines(text, change.Old, change.New); err != nil {
			return "", false, err
		}
		is = true
	}
	return text, is, nil
}

// allChanged fails when the file does not have exactly one function with the name in a change.
func allChanged(functions []function, file string, mutants []Mutant) error {
	count := map[string]int{}
	for _, function := range functions {
		count[function.name()]++
	}
	for _, mutant := range mutants {
		for _, change := range mutant.Changes {
			if change.File == file && count[change.Function] != 1 {
				return fmt.Errorf("insert %s into %s: it has %d functions named %q", mutant.Name, file, count[change.Function], change.Function)
			}
		}
	}
	return nil
}

// replaceLines replaces lines that occur once. It ignores indentation.
func replaceLines(text, old, by string) (string, error) {
	lines, wanted := strings.Split(text, "\n"), unindented(old)
	var found []int
	for i := 0; i+len(wanted) <= len(lines); i++ {
		if slices.Equal(unindented(strings.Join(lines[i:i+len(wanted)], "\n")), wanted) {
			found = append(found, i)
		}
	}
	switch {
	case len(found) == 0:
		return "", fmt.Errorf("these lines are not there:\n%s", old)
	case len(found) > 1:
		return "", fmt.Errorf("these lines are there %d times:\n%s", len(found), old)
	case slices.Equal(wanted, unindented(by)):
		return "", errors.New("old and new are the same")
	}
	lines = slices.Replace(lines, found[0], found[0]+len(wanted), strings.TrimRight(by, "\n"))
	return strings.Join(lines, "\n"), nil
}

func unindented(text string) []string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	for i, line := range lines {
		lines[i] = strings.TrimSpace(line)
	}
	return lines
}

func (f function) mutantName(mutant Mutant) string {
	return f.name() + "Mutant_" + mutant.identifier()
}

// renamed returns a changed function under its new name.
func (f function) renamed(text string, mutant Mutant) string {
	return text[:f.nameEnd-len(f.name())] + f.mutantName(mutant) + text[f.nameEnd:]
}

// dispatch returns the statement with which a function calls its changed form.
func (f function) dispatch(mutant Mutant) string {
	call := f.mutantName(mutant) + "(" + strings.Join(f.arguments, ", ") + ")"
	if f.receiver != "" {
		call = f.receiver + "." + call
	}
	if f.decl.Type.Results.NumFields() > 0 {
		return fmt.Sprintf("\n\tif activeMutant() == %q {\n\t\treturn %s\n\t}\n", mutant.Name, call)
	}
	return fmt.Sprintf("\n\tif activeMutant() == %q {\n\t\t%s\n\t\treturn\n\t}\n", mutant.Name, call)
}

// mutantSwitch is the file in each package with mutants that reads the name of the active one from a file next to the binary. The file may
// change while the binary runs. A call reads it if that was not done for some milliseconds, so that hot functions stay fast and packages
// that do nothing read nothing.
const mutantSwitch = `package %s

import (
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"
)

var (
	mutantFile = findMutantFile()
	mutantName = initialMutant()
	mutantRead atomic.Int64
)

func findMutantFile() string {
	binary, err := os.Executable()
	if err != nil {
		panic(err)
	}
	return filepath.Join(filepath.Dir(binary), %q)
}

func initialMutant() *atomic.Pointer[string] {
	name := &atomic.Pointer[string]{}
	if err := readMutant(name); err != nil {
		panic(err)
	}
	return name
}

func activeMutant() string {
	now, read := time.Now().UnixNano(), mutantRead.Load()
	if now-read > %d && mutantRead.CompareAndSwap(read, now) {
		_ = readMutant(mutantName)
	}
	return *mutantName.Load()
}

func readMutant(into *atomic.Pointer[string]) error {
	content, err := os.ReadFile(mutantFile)
	if err == nil {
		name := strings.TrimSpace(string(content))
		into.Store(&name)
	}
	return err
}
`

// switchInterval is how long a package may go on with a name that has changed.
const switchInterval = 5 * time.Millisecond

// switchFor returns the switch of a package.
func switchFor(pkg string) []byte {
	return fmt.Appendf(nil, mutantSwitch, pkg, switchName, switchInterval.Nanoseconds())
}
