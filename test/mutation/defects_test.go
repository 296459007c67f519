package main

import "testing"

// The sources that defects are planted in change with the version of Kubernetes; this notices without a build.
func TestEveryDefectCanBePlanted(t *testing.T) {
	t.Chdir("../..")
	defects, err := readDefects()
	if err != nil {
		t.Fatal(err)
	}
	sources, err := sourcesOf(t.Context(), defects)
	if err != nil {
		t.Fatal(err)
	}
	for _, defect := range defects {
		if _, err := sources.plant([]Defect{defect}); err != nil {
			t.Error(err)
		}
	}
	if _, err := sources.plant(defects); err != nil {
		t.Error(err)
	}
}

func TestPlantedFunctionsHandOver(t *testing.T) {
	const source = `package p

func (T) decide(_ int, names ...string) (bool, error) {
	if len(names) > 0 {
		return true, nil
	}
	return false, nil
}

func act() {
	println("act")
}
`
	planted, err := plant([]byte(source), "p.go", []Defect{
		{Name: "a/one", Breaks: "Never decides.", Changes: []Change{{File: "p.go", Function: "decide", Old: "if len(names) > 0 {", New: "if false {"}}},
		{Name: "a/two", Breaks: "Does not act.", Changes: []Change{{File: "p.go", Function: "act", Old: `println("act")`}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	const want = `package p

func (plantedReceiver0 T) decide(planted0 int, names ...string) (bool, error) {
	if plantedDefect == "a/one" {
		return plantedReceiver0.decidePlanted_a_one(planted0, names...)
	}

	if len(names) > 0 {
		return true, nil
	}
	return false, nil
}

func act() {
	if plantedDefect == "a/two" {
		actPlanted_a_two()
		return
	}

	println("act")
}

// Never decides.
func (T) decidePlanted_a_one(_ int, names ...string) (bool, error) {
	if false {
		return true, nil
	}
	return false, nil
}

// Does not act.
func actPlanted_a_two() {

}
`
	if string(planted) != want {
		t.Errorf("planted:\n%s\nwant:\n%s", planted, want)
	}
}

func TestUnclearChangesAreRefused(t *testing.T) {
	const source = "package p\n\nfunc f() {\n\tg()\n\th()\n\tg()\n}\n"
	for name, change := range map[string]Change{
		"lines that are not there": {Function: "f", Old: "i()", New: "h()"},
		"lines that occur twice":   {Function: "f", Old: "g()", New: "h()"},
		"no change":                {Function: "f", Old: "h()", New: "\th()"},
		"no such function":         {Function: "i", Old: "h()", New: "g()"},
	} {
		change.File = "p.go"
		if _, err := plant([]byte(source), "p.go", []Defect{{Name: "a/one", Changes: []Change{change}}}); err == nil {
			t.Errorf("%s: planted", name)
		}
	}
}
