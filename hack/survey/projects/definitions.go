package projects

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"
)

// projects is projects.yaml.
type projects struct {
	Projects []project `json:"projects"`
	// Explanations explain failures, by the resource and the behavior's id.
	Explanations map[string]map[string]string `json:"explanations"`

	// controlled is set when the projects' controllers run.
	controlled bool
}

// project is a project with custom resources.
type project struct {
	Name string `json:"name"`
	// Module and Version identify a Go module; Definitions is a pattern for its files with definitions.
	Module      string `json:"module"`
	Version     string `json:"version"`
	Definitions string `json:"definitions"`
	// Controllers are the controllers with which its resources are also tested; nil for none.
	Controllers *controllers `json:"controllers,omitempty"`

	found []*apiextensionsv1.CustomResourceDefinition
}

//go:embed projects.yaml
var projectsFile []byte

func readProjects() (projects, error) {
	var read projects
	if err := yaml.UnmarshalStrict(projectsFile, &read); err != nil {
		return projects{}, fmt.Errorf("read projects.yaml: %w", err)
	}
	return read, nil
}

// download downloads the module, and reads its definitions.
func (p *project) download(ctx context.Context) error {
	command := exec.CommandContext(ctx, "go", "mod", "download", "-json", p.Module+"@"+p.Version)
	command.Dir = os.TempDir() // it is not part of this module
	output, err := command.Output()
	var module struct{ Dir, Error string }
	if decoded := json.Unmarshal(output, &module); decoded != nil || module.Error != "" {
		return fmt.Errorf("download %s@%s: %w", p.Module, p.Version, errors.Join(err, decoded, errors.New(module.Error)))
	}
	files, err := filepath.Glob(filepath.Join(module.Dir, filepath.FromSlash(p.Definitions)))
	if err != nil {
		return err
	}
	for _, file := range files {
		found, err := definitionsIn(file)
		if err != nil {
			return err
		}
		p.found = append(p.found, found...)
	}
	if len(p.found) == 0 {
		return fmt.Errorf("%s@%s has no definitions at %s", p.Module, p.Version, p.Definitions)
	}
	return nil
}

// definitionsIn reads the definitions in a file, and ignores other objects.
func definitionsIn(file string) ([]*apiextensionsv1.CustomResourceDefinition, error) {
	content, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var found []*apiextensionsv1.CustomResourceDefinition
	documents := utilyaml.NewYAMLOrJSONDecoder(bytes.NewReader(content), len(content)+1)
	for {
		definition := &apiextensionsv1.CustomResourceDefinition{}
		switch err := documents.Decode(definition); {
		case errors.Is(err, io.EOF):
			return found, nil
		case err != nil:
			return nil, fmt.Errorf("read %s: %w", file, err)
		}
		if definition.Kind == "CustomResourceDefinition" {
			// The conversion webhook is a Service with pods, which do not run here.
			definition.Spec.Conversion = nil
			found = append(found, definition)
		}
	}
}

// resources returns the names of all tested resources, sorted.
func (p projects) resources() []string {
	var names []string
	for _, project := range p.Projects {
		for _, definition := range project.found {
			if p.controlled && project.Controllers.Untested[definition.Name] != "" {
				continue
			}
			names = append(names, definition.Name)
		}
	}
	slices.Sort(names)
	return names
}

// establishing limits how long a server may take to serve new kinds.
const establishing = time.Minute

// define creates the definitions, and waits until their kinds are served.
func (p projects) define(ctx context.Context, config *rest.Config) error {
	clients, err := apiextensions.NewForConfig(config)
	if err != nil {
		return err
	}
	definitions := clients.ApiextensionsV1().CustomResourceDefinitions()
	for _, project := range p.Projects {
		for _, definition := range project.found {
			if _, err := definitions.Create(ctx, definition, metav1.CreateOptions{}); err != nil {
				return fmt.Errorf("define %s: %w", definition.Name, err)
			}
		}
	}
	for _, name := range p.resources() {
		err := wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, establishing, true, func(ctx context.Context) (bool, error) {
			defined, err := definitions.Get(ctx, name, metav1.GetOptions{})
			return err == nil && slices.ContainsFunc(defined.Status.Conditions, func(condition apiextensionsv1.CustomResourceDefinitionCondition) bool {
				return condition.Type == apiextensionsv1.Established && condition.Status == apiextensionsv1.ConditionTrue
			}), nil
		})
		if err != nil {
			return fmt.Errorf("%s is not served: %w", name, err)
		}
	}
	return nil
}
