// Package environments runs the suites on embedded clusters that are configured like production clusters: with admission policies,
// webhooks, quotas and controllers of other teams. No behavior may fail there, and every skip must name its cause. The survey fails when an
// environment does not meet its expectations.
package environments

import (
	"context"
	"flag"
	"fmt"

	"github.com/deletion-conformance/deletion-conformance/hack/survey/lab"
)

// document is the generated document.
const document = "docs/environments.md"

// Survey declares the flags of the survey.
func Survey(flags *flag.FlagSet) func(context.Context, []string) error {
	list := flags.Bool("list", false, "list the environments")
	table := flags.Bool("table", false, "run nothing, and write "+document+" from the last reports")
	only := flags.String("only", "", "run the environments with these `NAMES`, separated by commas")
	return func(ctx context.Context, arguments []string) error {
		chosen, err := lab.Choose(environments, func(e environment) string { return e.name }, *only)
		switch {
		case err != nil:
			return err
		case !*list:
			return run(ctx, chosen, *table, arguments)
		}
		for _, environment := range chosen {
			fmt.Printf("%-24s %s\n", environment.name, environment.about)
		}
		return nil
	}
}

func run(ctx context.Context, chosen []environment, tableOnly bool, arguments []string) error {
	var rows []row
	var unmet []error
	for _, environment := range chosen {
		result, err := environment.try(ctx, tableOnly, arguments)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		failed := []error{err}
		if err == nil {
			row := rowOf(environment, result)
			rows = append(rows, row)
			fmt.Println(row)
			failed = environment.expect.check(result, len(arguments) == 0)
		}
		for _, err := range failed {
			unmet = append(unmet, fmt.Errorf("%s: %w", environment.name, err))
			fmt.Println("  " + unmet[len(unmet)-1].Error())
		}
	}
	if len(rows) == len(environments) && len(arguments) == 0 {
		if err := lab.WriteDocument(document, markdown(rows)); err != nil {
			return err
		}
	}
	if len(unmet) > 0 {
		return fmt.Errorf("%d expectations are not met, the first: %w", len(unmet), unmet[0])
	}
	return nil
}
