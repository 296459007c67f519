// Gadgets runs the operator of examples/gadgets, for the test of the parent directory. With -mistake it makes a typical mistake of operators.
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"slices"

	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/deletion-conformance/deletion-conformance/examples/gadgets"
)

func main() {
	group := flag.String("group", "gadgets.example.com", "API `GROUP` of the Gadgets")
	mistake := flag.String("mistake", "", "the `MISTAKE` to make")
	flag.Parse()
	go endWithInput()
	if err := operate(*group, *mistake); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// endWithInput ends the program with its input, because the test that started it is then gone.
func endWithInput() {
	_, _ = io.Copy(io.Discard, os.Stdin)
	os.Exit(1)
}

// operate runs the operator for the Gadgets of a group until the program is terminated.
func operate(group, mistake string) error {
	if made := gadgets.Mistake(mistake); mistake != "" && !slices.Contains(gadgets.Mistakes, made) {
		return fmt.Errorf("-mistake %q: they are %v", mistake, gadgets.Mistakes)
	}
	config, err := ctrl.GetConfig() // from -kubeconfig, which controller-runtime defines
	if err != nil {
		return err
	}
	log.SetLogger(klog.Background())
	if err := gadgets.Run(ctrl.SetupSignalHandler(), config, gadgets.Options{Group: group, Mistake: gadgets.Mistake(mistake)}); err != nil {
		return fmt.Errorf("take care of the Gadgets of %s: %w", group, err)
	}
	return nil
}
