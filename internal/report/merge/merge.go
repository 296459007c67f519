// Package merge merges reports.
package merge

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
	"github.com/deletion-conformance/deletion-conformance/internal/report"
	"github.com/deletion-conformance/deletion-conformance/internal/report/figures"
)

// Reports merges the reports of shards: runs of one selection, each with a part of its behaviors or with other clusters. If several reports
// contain a behavior of the same cluster, the one in which it ran counts. It fails, naming the reports, when it ran in two, when the
// runners, the catalogs or the clusters differ, and when a shard is missing.
func Reports(reports ...report.Source) (v1alpha1.Report, error) {
	if len(reports) == 0 {
		return v1alpha1.Report{}, errors.New("merge reports: none was given")
	}
	if err := checkShards(reports); err != nil {
		return v1alpha1.Report{}, err
	}
	ordered := slices.Clone(reports)
	slices.SortStableFunc(ordered, func(a, b report.Source) int { return a.Start.Compare(b.Start) })
	m := merging{merged: v1alpha1.Report{APIVersion: v1alpha1.APIVersion, Kind: v1alpha1.Kind}, ran: map[place]report.Source{}, first: ordered[0]}
	for _, r := range ordered {
		if err := m.add(r); err != nil {
			return v1alpha1.Report{}, err
		}
	}
	return report.Concluded(figures.Measure(m.merged)), nil
}

// merging is the state of a merge.
type merging struct {
	merged v1alpha1.Report
	// first is the report with which the others must be consistent.
	first report.Source
	// ran maps cells to the report in which they ran.
	ran map[place]report.Source
	// catalog holds the behaviors of the first report that has any, which is catalogOf.
	catalog   map[string]v1alpha1.Behavior
	catalogOf report.Source
}

// place is one cell of the report: a behavior on a cluster.
type place struct{ cluster, behavior string }

func (m *merging) add(r report.Source) error {
	if r.Runner != m.first.Runner || r.Strict != m.first.Strict {
		return fmt.Errorf("merge %s and %s: they were made by runners %q (strict: %t) and %q (strict: %t); shards come from one",
			m.first.Name(), r.Name(), m.first.Runner, m.first.Strict, r.Runner, r.Strict)
	}
	if err := m.checkCatalog(r); err != nil {
		return err
	}
	whole := &m.merged
	whole.RunID = strings.TrimPrefix(whole.RunID+"+"+r.RunID, "+")
	whole.Runner, whole.Strict = r.Runner, r.Strict
	if whole.Start.IsZero() {
		whole.Start = r.Start
	}
	if r.End.After(whole.End) {
		whole.End = r.End
	}
	whole.Interrupted = whole.Interrupted || r.Interrupted
	whole.Shards = sets.List(sets.New(slices.Concat(whole.Shards, r.Shards, []string{r.Shard})...).Delete(""))
	for _, left := range r.LeftOut {
		if !slices.Contains(whole.LeftOut, left) {
			whole.LeftOut = append(whole.LeftOut, left)
		}
	}
	for _, cluster := range r.Clusters {
		if err := m.addCluster(r, cluster); err != nil {
			return err
		}
	}
	return nil
}

// checkCatalog refuses a report of another catalog: a behavior that one of the reports does not know would be missing in silence.
func (m *merging) checkCatalog(r report.Source) error {
	catalog := map[string]v1alpha1.Behavior{}
	for _, cluster := range r.Clusters {
		for _, result := range cluster.Results {
			catalog[result.ID] = result.Behavior
		}
	}
	if len(catalog) == 0 {
		return nil
	}
	if m.catalog == nil {
		m.catalog, m.catalogOf = catalog, r
		return nil
	}
	var differences []string
	for _, side := range []struct {
		of          report.Source
		have, other map[string]v1alpha1.Behavior
	}{{m.catalogOf, m.catalog, catalog}, {r, catalog, m.catalog}} {
		if only := sets.List(sets.KeySet(side.have).Difference(sets.KeySet(side.other))); len(only) > 0 {
			differences = append(differences, fmt.Sprintf("only %s has %s", side.of.Name(), listed(only)))
		}
	}
	if changed := changedIn(m.catalog, catalog); len(changed) > 0 {
		differences = append(differences, "they differ in the level or the statement of "+listed(changed))
	}
	if len(differences) == 0 {
		return nil
	}
	return fmt.Errorf("merge %s and %s: their catalogs of behaviors differ: %s; merge reports of one build of the runner",
		m.catalogOf.Name(), r.Name(), strings.Join(differences, "; "))
}

// changedIn are the ids of behaviors that are not the same in two catalogs, sorted.
func changedIn(catalog, other map[string]v1alpha1.Behavior) []string {
	var changed []string
	for id, behavior := range catalog {
		if now, has := other[id]; has && (now.Level != behavior.Level || now.Statement != behavior.Statement) {
			changed = append(changed, id)
		}
	}
	slices.Sort(changed)
	return changed
}

// maxListed is how many ids an error names.
const maxListed = 5

func listed(ids []string) string {
	if len(ids) > maxListed {
		return fmt.Sprintf("%s and %d more", strings.Join(ids[:maxListed], ", "), len(ids)-maxListed)
	}
	return strings.Join(ids, ", ")
}

func (m *merging) addCluster(r report.Source, cluster v1alpha1.Cluster) error {
	i := slices.IndexFunc(m.merged.Clusters, func(c v1alpha1.Cluster) bool { return c.Name == cluster.Name })
	if i < 0 {
		i = len(m.merged.Clusters)
		m.merged.Clusters = append(m.merged.Clusters, v1alpha1.Cluster{Name: cluster.Name, Resource: cluster.Resource})
	}
	into := &m.merged.Clusters[i]
	if into.ServerVersion != "" && cluster.ServerVersion != "" && into.ServerVersion != cluster.ServerVersion {
		return fmt.Errorf("merge %s: its cluster %q runs %s, in the other reports it runs %s; they are not shards of one run",
			r.Name(), cluster.Name, cluster.ServerVersion, into.ServerVersion)
	}
	into.ServerVersion = cmp.Or(into.ServerVersion, cluster.ServerVersion)
	into.NodeRuntime = cmp.Or(into.NodeRuntime, cluster.NodeRuntime)
	into.KubectlVersion = cmp.Or(into.KubectlVersion, cluster.KubectlVersion)
	into.Problem = cmp.Or(into.Problem, cluster.Problem)
	if !strings.Contains(into.Warning, cluster.Warning) {
		into.Warning = strings.TrimPrefix(into.Warning+"; "+cluster.Warning, "; ")
	}
	into.LeftBehind = cmp.Or(into.LeftBehind, cluster.LeftBehind)
	if cluster.Kept != "" { // by each shard
		into.Kept = strings.TrimPrefix(into.Kept+"\n"+cluster.Kept, "\n")
	}
	for _, status := range cluster.Features {
		if !slices.ContainsFunc(into.Features, func(c v1alpha1.FeatureStatus) bool { return c.Feature == status.Feature }) {
			into.Features = append(into.Features, status)
		}
	}
	for _, finding := range cluster.Preflight {
		into.Preflight = addFinding(into.Preflight, finding)
	}
	for _, result := range cluster.Results {
		if err := m.addResult(r, into, result); err != nil {
			return err
		}
	}
	return nil
}

// addFinding adds a finding of one shard. The same finding of several shards is one finding, with the behaviors of all.
func addFinding(findings []v1alpha1.Finding, found v1alpha1.Finding) []v1alpha1.Finding {
	i := slices.IndexFunc(findings, func(f v1alpha1.Finding) bool { return f.Check == found.Check && f.Cause == found.Cause })
	if i < 0 {
		return append(findings, found)
	}
	findings[i].Behaviors = sets.List(sets.New(slices.Concat(findings[i].Behaviors, found.Behaviors)...))
	if len(findings[i].Behaviors) > 0 {
		findings[i].Effect = v1alpha1.SkippedEffect(len(findings[i].Behaviors))
	}
	return findings
}

func (m *merging) addResult(r report.Source, into *v1alpha1.Cluster, result v1alpha1.Result) error {
	at := place{into.Name, result.ID}
	if weight(result) == ran {
		if other, twice := m.ran[at]; twice {
			return fmt.Errorf("merge %s and %s: both ran %s on cluster %q; merge shards of one run, and compare runs of the same",
				other.Name(), r.Name(), result.ID, into.Name)
		}
		m.ran[at] = r
	}
	i, found := slices.BinarySearchFunc(into.Results, result.ID, func(have v1alpha1.Result, id string) int { return strings.Compare(have.ID, id) })
	switch {
	case !found:
		into.Results = slices.Insert(into.Results, i, result)
	case weight(result) > weight(into.Results[i]):
		into.Results[i] = result
	}
	return nil
}

// ran is the weight of a behavior that ran.
const ran = 4

// weight ranks the results of the same behavior: the more is known, the higher.
func weight(result v1alpha1.Result) int {
	switch result.Outcome {
	case v1alpha1.Filtered:
		return 0
	case v1alpha1.Skipped:
		return 1
	}
	switch {
	case report.WasTested(result), !result.Start.IsZero():
		return ran
	case result.Outcome == v1alpha1.Errored:
		return 3
	}
	return 2
}

// shards are the shards of one cluster.
type shards struct {
	of   int
	have map[int]report.Source
}

// checkShards returns which shards are missing for each cluster.
func checkShards(reports []report.Source) error {
	clusters := map[string]*shards{}
	for _, r := range reports {
		if r.Shard == "" {
			continue
		}
		number, of, err := v1alpha1.ParseShard(r.Shard)
		if err != nil {
			return fmt.Errorf("merge %s: its shard: %w", r.Name(), err)
		}
		for _, cluster := range r.Clusters {
			part := clusters[cluster.Name]
			if part == nil {
				part = &shards{of, map[int]report.Source{}}
				clusters[cluster.Name] = part
			}
			if other, taken := part.have[number]; taken {
				return fmt.Errorf("merge %s and %s: both are shard %s of cluster %q", other.Name(), r.Name(), r.Shard, cluster.Name)
			}
			if part.of != of {
				return fmt.Errorf("merge %s: it is shard %s of cluster %q, and others are of %d", r.Name(), r.Shard, cluster.Name, part.of)
			}
			part.have[number] = r
		}
	}
	for cluster, parts := range clusters {
		if missing := parts.missing(); len(missing) > 0 {
			return fmt.Errorf("merge reports: of cluster %q shard %s of %d is missing; give the reports of all shards",
				cluster, strings.Join(missing, ", "), parts.of)
		}
	}
	return nil
}

func (s *shards) missing() []string {
	var missing []string
	for n := range s.of {
		if _, have := s.have[n+1]; !have {
			missing = append(missing, strconv.Itoa(n+1))
		}
	}
	return missing
}
