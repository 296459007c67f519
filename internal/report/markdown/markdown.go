// Package markdown writes a report as summary.md, fit for a GitHub job summary.
package markdown

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
	"github.com/deletion-conformance/deletion-conformance/internal/report"
	"github.com/deletion-conformance/deletion-conformance/internal/report/figures"
	"github.com/deletion-conformance/deletion-conformance/internal/report/visible"
)

// The limits keep summary.md well below GitHub's limit of 1 MiB for a job summary; omissions are noted.
const (
	detailedResults  = 30
	messageInSummary = 4_000
	evidenceInDetail = 8_000
	maxReasons       = 30
	maxSlowest       = 5
	maxCauses        = 20
	// bytesOfSection is the size after which a section lists no more.
	bytesOfSection = 200_000
)

// marks are the symbols of outcomes, always next to their names.
var marks = map[v1alpha1.Outcome]string{
	v1alpha1.Passed: "✅", v1alpha1.Failed: "❌", v1alpha1.Outdated: "🧹", v1alpha1.Known: "📌", v1alpha1.Deviated: "🔶", v1alpha1.Errored: "💥", v1alpha1.Interrupted: "⏹️", v1alpha1.Skipped: "⏭️", v1alpha1.Filtered: "▫️",
}

// Write writes the report as Markdown, fit for a GitHub job summary: the verdict, the counts, failures first.
func Write(w io.Writer, r v1alpha1.Report) error {
	r = visible.Value(r)
	sections := []string{
		verdictSection(r),
		countSection(r),
		factSection(r),
		causeSection(r),
		resultSection(r, v1alpha1.Failed, "Failed", "failed"),
		resultSection(r, v1alpha1.Outdated, "Outdated known failures", "are listed as known failures, and passed, or the date is over"),
		resultSection(r, v1alpha1.Errored, "Errors of the run", "could not be tested because the run itself failed"),
		resultSection(r, v1alpha1.Known, "Known failures", "failed, are in the list of known failures, and do not fail the run"),
		resultSection(r, v1alpha1.Deviated, "Deviations", "have no written promise, and differ here"),
		preflightSection(r),
		untestedSection(r),
		unselectedSection(r),
		leftOutSection(r),
		figuresSection(r),
		slowestSection(r),
	}
	sections = slices.DeleteFunc(sections, func(section string) bool { return section == "" })
	if _, err := io.WriteString(w, strings.Join(sections, "\n")); err != nil {
		return fmt.Errorf("write summary: %w", err)
	}
	return nil
}

// verdictMarks are the symbols of conclusions.
var verdictMarks = map[v1alpha1.Conclusion]string{
	v1alpha1.Conformant: marks[v1alpha1.Passed], v1alpha1.Nonconformant: marks[v1alpha1.Failed], v1alpha1.RunError: marks[v1alpha1.Errored],
	v1alpha1.ConformantExceptKnown: marks[v1alpha1.Known], v1alpha1.KnownFailuresOutdated: marks[v1alpha1.Outdated],
	v1alpha1.Incomplete: marks[v1alpha1.Interrupted], v1alpha1.NothingTested: "⚠️",
	v1alpha1.NotTested: marks[v1alpha1.Filtered],
}

// verdictSection is the headline with the reason, and a paragraph about kubectl if it was tested.
func verdictSection(r v1alpha1.Report) string {
	var section strings.Builder
	for _, verdict := range r.Verdicts {
		mark, reason := verdictMarks[verdict.Conclusion], prose(verdict.Reason, messageInSummary)
		if verdict.Subject == v1alpha1.SubjectKubectl {
			line := fmt.Sprintf("%s %s: **%s**, %s", mark, prose(verdict.Title(), messageInSummary), verdict.Conclusion, reason)
			section.WriteString("\n" + strings.TrimSuffix(line, ", ") + "\n")
			continue
		}
		fmt.Fprintf(&section, "## %s Deletion conformance: %s\n", mark, verdict.Conclusion)
		if reason != "" {
			section.WriteString("\n" + reason + "\n")
		}
	}
	return section.String()
}

// factSection is the line about the run.
func factSection(r v1alpha1.Report) string {
	facts := []string{"Run " + code(r.RunID), "runner " + code(r.Runner)}
	if !r.Start.IsZero() {
		facts = append(facts, r.Start.UTC().Format("2006-01-02 15:04:05 UTC"))
	}
	if r.End.After(r.Start) {
		facts = append(facts, "took "+r.End.Sub(r.Start).Round(100*time.Millisecond).String())
	}
	for _, version := range report.KubectlVersions(r) {
		facts = append(facts, "kubectl "+code(version))
	}
	if r.Strict {
		facts = append(facts, "strict: deviations fail the run")
	}
	return strings.Join(facts, " · ") + "\n"
}

// countSection is the table of counts, with a row for each cluster and columns for what there is. The reason why a cluster could not be tested is
// in the verdict.
func countSection(r v1alpha1.Report) string {
	if len(r.Clusters) == 0 {
		return ""
	}
	header, line := "| Cluster | Server |", "|---|---|"
	nodes := slices.ContainsFunc(r.Clusters, func(cluster v1alpha1.Cluster) bool { return cluster.NodeRuntime != "" })
	if nodes {
		header, line = header+" Node runtime |", line+"---|"
	}
	outcomes := slices.DeleteFunc(slices.Clone(v1alpha1.Outcomes), func(outcome v1alpha1.Outcome) bool { return r.Counts[outcome] == 0 })
	for _, outcome := range outcomes {
		header, line = header+fmt.Sprintf(" %s %s |", marks[outcome], report.OutcomeName(outcome)), line+"--:|"
	}
	var table strings.Builder
	table.WriteString(header + "\n" + line + "\n")
	for _, cluster := range r.Clusters {
		fmt.Fprintf(&table, "| %s | %s |", code(cluster.Name), cell(cluster.ServerVersion))
		if nodes {
			fmt.Fprintf(&table, " %s |", cell(cluster.NodeRuntime))
		}
		for _, outcome := range outcomes {
			fmt.Fprintf(&table, " %d |", cluster.Counts[outcome])
		}
		table.WriteString("\n")
	}
	for _, cluster := range r.Clusters {
		if cluster.Warning != "" {
			fmt.Fprintf(&table, "\nWarning for %s:\n\n%s", code(cluster.Name), fenced(cluster.Warning, messageInSummary))
		}
		if cluster.LeftBehind != "" {
			fmt.Fprintf(&table, "\nOn %s something of the run may be left:\n\n%s", code(cluster.Name), fenced(cluster.LeftBehind, messageInSummary))
		}
		if cluster.Kept != "" {
			fmt.Fprintf(&table, "\nOn %s the objects of failed behaviors were kept:\n\n%s", code(cluster.Name), fenced(cluster.Kept, messageInSummary))
		}
	}
	return table.String()
}

// preflightSection is a table of the findings that are not OK, one row for each.
func preflightSection(r v1alpha1.Report) string {
	var rows strings.Builder
	for _, cluster := range r.Clusters {
		for _, finding := range cluster.Preflight {
			if finding.Severity == v1alpha1.OK || rows.Len() > bytesOfSection {
				continue
			}
			fmt.Fprintf(&rows, "| %s | %s | %s | %s | %s | %s |\n", code(cluster.Name), cell(finding.Check), cell(string(finding.Severity)),
				cell(finding.Cause), cell(finding.Effect), cell(finding.Remedy))
		}
	}
	if rows.Len() == 0 {
		return ""
	}
	return "### Preflight\n\n| Cluster | Check | Result | Cause | Effect | Remedy |\n|---|---|---|---|---|---|\n" + rows.String()
}

// leftOutSection lists the resources that were left out of a run of all resources.
func leftOutSection(r v1alpha1.Report) string {
	if len(r.LeftOut) == 0 {
		return ""
	}
	var section strings.Builder
	fmt.Fprintf(&section, "### Resources left out (%d)\n\n| Cluster | Resource | Reason |\n|---|---|---|\n", len(r.LeftOut))
	for i, left := range r.LeftOut {
		if section.Len() > bytesOfSection {
			fmt.Fprintf(&section, "\n… and %d more: report.json has them all.\n", len(r.LeftOut)-i)
			break
		}
		fmt.Fprintf(&section, "| %s | %s | %s |\n", code(left.Cluster), code(left.Resource), cell(left.Reason))
	}
	return section.String()
}

func cell(text string) string {
	if text == "" {
		return "–"
	}
	return prose(text, inlineLimit)
}

// causeSection is the table of the causes that explain several failures or deviations, if there are any.
func causeSection(r v1alpha1.Report) string {
	causes := slices.DeleteFunc(slices.Clone(r.Causes), func(cause v1alpha1.Cause) bool { return cause.Failed+cause.Deviated < 2 })
	if len(causes) == 0 {
		return ""
	}
	var section strings.Builder
	section.WriteString("### Causes\n\nEach explains several failures or deviations.\n\n| Cause | Failed | Deviated | Behaviors |\n|---|--:|--:|--:|\n")
	for _, cause := range causes[:min(len(causes), maxCauses)] {
		fmt.Fprintf(&section, "| %s | %d | %d | %d |\n", cell(cause.Cause), cause.Failed, cause.Deviated, len(cause.Behaviors))
	}
	if more := len(causes) - maxCauses; more > 0 {
		fmt.Fprintf(&section, "\n… and %d more: report.json has them all.\n", more)
	}
	return section.String()
}

// resultSection shows the results of one outcome by cause: the ids of all, and the first one with its message and, folded, its evidence.
// The message of an error is the cause.
func resultSection(r v1alpha1.Report, outcome v1alpha1.Outcome, title, meaning string) string {
	groups := report.Causes(r, outcome)
	if len(groups) == 0 {
		return ""
	}
	var section strings.Builder
	total, shown := 0, 0
	for _, group := range groups {
		total += len(group.Results)
	}
	fmt.Fprintf(&section, "### %s %s (%d)\n\nThese behaviors %s.\n", marks[outcome], title, total, meaning)
	for _, group := range groups[:min(len(groups), detailedResults)] {
		if section.Len() > bytesOfSection {
			break
		}
		shown++
		if len(group.Results) > 1 {
			section.WriteString("\n" + fenced(group.Cause.Cause, messageInSummary) + "\n" + details(report.Behaviors(len(group.Behaviors)), listed(group.Behaviors)))
		}
		if len(group.Results) == 1 || outcome != v1alpha1.Errored {
			section.WriteString("\n" + resultDetail(r.Clusters[group.Results[0].Cluster], group.Results[0].Result))
		}
	}
	if left := len(groups) - shown; left > 0 {
		fmt.Fprintf(&section, "\n… and %d more: report.html and report.json have them all.\n", left)
	}
	return section.String()
}

func resultDetail(cluster v1alpha1.Cluster, result v1alpha1.Result) string {
	title := fmt.Sprintf("**%s**  \n%s on %s (%s)\n\n", prose(result.Statement, inlineLimit), code(result.ID), code(cluster.Name), cell(string(result.Level)))
	block := fenced(strings.TrimSpace(report.Message(result)), messageInSummary)
	if evidence := report.FailureDetails(result); evidence != "" {
		block += "\n" + details("Where, why and the timeline", fenced(evidence, evidenceInDetail))
	}
	return title + block
}

// listed returns ids, each once.
func listed(ids []string) string {
	var list []string
	for _, id := range slices.Compact(slices.Sorted(slices.Values(ids))) {
		list = append(list, code(id))
	}
	return strings.Join(list, " · ") + "\n"
}

// unselectedSection counts the behaviors that were not selected by reason.
func unselectedSection(r v1alpha1.Report) string {
	groups := report.ByReason(r.Results(), v1alpha1.Filtered)
	if len(groups) == 0 {
		return ""
	}
	var section strings.Builder
	fmt.Fprintf(&section, "### %s Not selected (%d)\n\n", marks[v1alpha1.Filtered], r.Counts[v1alpha1.Filtered])
	for _, group := range groups[:min(len(groups), maxReasons)] {
		fmt.Fprintf(&section, "- %d: %s\n", len(group.IDs), prose(group.Reason, inlineLimit))
	}
	return section.String()
}

// untestedSection groups the selected behaviors that were not tested by reason, over all clusters.
func untestedSection(r v1alpha1.Report) string {
	groups := report.ByReason(r.Results(), v1alpha1.Skipped, v1alpha1.Interrupted)
	if len(groups) == 0 {
		return ""
	}
	var section strings.Builder
	section.WriteString("### " + marks[v1alpha1.Skipped] + " Not tested\n\n")
	shown := 0
	for _, group := range groups {
		if shown == maxReasons || section.Len() > bytesOfSection {
			break
		}
		shown++
		section.WriteString(details(fmt.Sprintf("%d: %s", len(group.IDs), prose(group.Reason, inlineLimit)), listed(group.IDs)))
	}
	if left := len(groups) - shown; left > 0 {
		fmt.Fprintf(&section, "\n… and %d more reasons: report.html and report.json have them all.\n", left)
	}
	return section.String()
}

// figuresSection is the table of the durations of deletions.
func figuresSection(r v1alpha1.Report) string {
	var rows strings.Builder
	for _, cluster := range r.Clusters {
		for _, f := range cluster.Figures {
			fmt.Fprintf(&rows, "| %s | %s | %d%s |", prose(figures.Name(f), inlineLimit), code(cluster.Name), f.Count, figures.Rate(f))
			for _, seconds := range []float64{f.P50, f.P90, f.P99, f.Max} {
				fmt.Fprintf(&rows, " %s |", report.Seconds(seconds))
			}
			rows.WriteString("\n")
		}
	}
	if rows.Len() == 0 {
		return ""
	}
	return "### ⏱️ How long deletions took\n\n| What | Cluster | Measured | p50 | p90 | p99 | max |\n|---|---|--:|--:|--:|--:|--:|\n" + rows.String()
}

// slowestSection lists the slowest behaviors.
func slowestSection(r v1alpha1.Report) string {
	type timed struct {
		cluster string
		result  v1alpha1.Result
	}
	var all []timed
	for _, cluster := range r.Clusters {
		for _, result := range cluster.Results {
			if result.Seconds > 0 {
				all = append(all, timed{cluster.Name, result})
			}
		}
	}
	if len(all) == 0 {
		return ""
	}
	slices.SortStableFunc(all, func(a, b timed) int { return cmp.Compare(b.result.Seconds, a.result.Seconds) })
	var table strings.Builder
	table.WriteString("### 🐌 Slowest\n\n| Behavior | Cluster | Seconds |\n|---|---|--:|\n")
	for _, t := range all[:min(len(all), maxSlowest)] {
		fmt.Fprintf(&table, "| %s | %s | %.2f |\n", code(t.result.ID), code(t.cluster), t.result.Seconds)
	}
	return table.String()
}
