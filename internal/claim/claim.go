// Package claim makes claims of conformance from reports, and verifies them. A claim is derived from a report, which it contains, so that
// every reader can derive it again.
package claim

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
	"github.com/deletion-conformance/deletion-conformance/internal/jobs/jobstore"
	"github.com/deletion-conformance/deletion-conformance/internal/report"
)

// Source is what a claim is made of.
type Source struct {
	// Report is the content of report.json.
	Report []byte
	// Implementation is what was tested.
	Implementation v1alpha1.Implementation
	// Cluster is the name of a cluster in the report; it may be empty if the report has one.
	Cluster string
	// Profiles are the profiles to claim. None means all that the run selected completely, and of which it tested something.
	Profiles []v1alpha1.Profile
}

// Unclaimed is a profile that a claim does not contain, with the reason.
type Unclaimed struct {
	Profile v1alpha1.Profile
	Reason  string
}

// Make makes a claim, and returns the profiles that it leaves out. It fails if the report has no such cluster, if a profile in the source
// cannot be claimed, or if none can. It does not verify the claim.
func Make(source Source) (v1alpha1.ConformanceReport, []Unclaimed, error) {
	whole, err := report.Decode(source.Report)
	if err != nil {
		return v1alpha1.ConformanceReport{}, nil, err
	}
	cluster, err := clusterOf(whole, source.Cluster)
	if err != nil {
		return v1alpha1.ConformanceReport{}, nil, err
	}
	var profiles []v1alpha1.Profile
	var left []Unclaimed
	for _, profile := range v1alpha1.Profiles {
		named := slices.Contains(source.Profiles, profile)
		if len(source.Profiles) > 0 && !named {
			continue
		}
		reason := incomplete(cluster, profile)
		if reason != "" && named {
			return v1alpha1.ConformanceReport{}, nil, fmt.Errorf("the profile %s cannot be claimed: %s", profile, reason)
		}
		if reason != "" {
			left = append(left, Unclaimed{profile, reason})
			continue
		}
		profiles = append(profiles, profile)
	}
	if len(profiles) == 0 {
		return v1alpha1.ConformanceReport{}, nil, fmt.Errorf("no profile can be claimed: %s: %s", left[0].Profile, left[0].Reason)
	}
	claim := derive(whole, cluster, source.Implementation, profiles)
	claim.Evidence, err = seal(source.Report)
	return claim, left, err
}

// clusterOf returns a cluster of a report, by its name.
func clusterOf(whole v1alpha1.Report, name string) (v1alpha1.Cluster, error) {
	var names []string
	for _, cluster := range whole.Clusters {
		if cluster.Name == name || name == "" && len(whole.Clusters) == 1 {
			return cluster, nil
		}
		names = append(names, cluster.Name)
	}
	switch {
	case len(names) == 0:
		return v1alpha1.Cluster{}, errors.New("the report has no cluster")
	case name == "":
		return v1alpha1.Cluster{}, fmt.Errorf("the report has several clusters, and a claim is about one: name one of %s", strings.Join(names, ", "))
	}
	return v1alpha1.Cluster{}, fmt.Errorf("the report has no cluster %q, only %s", name, strings.Join(names, ", "))
}

// incomplete returns why a profile cannot be claimed from the results of a cluster; empty when it can.
func incomplete(cluster v1alpha1.Cluster, profile v1alpha1.Profile) string {
	results := slices.DeleteFunc(ofProfile(cluster, profile), func(result v1alpha1.Result) bool { return isInapplicable(cluster, result) })
	if groups := report.ByReason(results, v1alpha1.Filtered); len(groups) > 0 {
		return fmt.Sprintf("%s %s", report.Behaviors(len(groups[0].IDs)), groups[0].Reason)
	}
	switch {
	case len(results) == 0:
		return "the report has no behavior of it"
	case !slices.ContainsFunc(results, report.WasTested):
		return fmt.Sprintf("no behavior was tested (%s)", report.ReasonOf(results[0]))
	}
	return ""
}

// isInapplicable reports whether a behavior was not selected because it does not apply to the resource that was tested.
func isInapplicable(cluster v1alpha1.Cluster, result v1alpha1.Result) bool {
	return cluster.Resource != "" && !result.AnyResource && result.Outcome == v1alpha1.Filtered
}

// ofProfile returns the results of a profile.
func ofProfile(cluster v1alpha1.Cluster, profile v1alpha1.Profile) []v1alpha1.Result {
	return slices.DeleteFunc(slices.Clone(cluster.Results), func(result v1alpha1.Result) bool { return result.Profile() != profile })
}

// seal compresses a report, with its digest.
func seal(content []byte) (v1alpha1.ClaimEvidence, error) {
	compressed, err := jobstore.Compress(content)
	return v1alpha1.ClaimEvidence{SHA256: digest(content), Report: compressed}, err
}

func digest(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}

// expand returns the content of the report in a claim.
func expand(evidence v1alpha1.ClaimEvidence) (content []byte, err error) {
	reader, err := gzip.NewReader(bytes.NewReader(evidence.Report))
	if err == nil {
		content, err = readAll(reader, maxReport)
	}
	if err != nil {
		return nil, fmt.Errorf("the report cannot be decompressed: %w", err)
	}
	return content, nil
}

// open returns the report of a claim, with the violations of its schema. It fails if the report does not have the stated digest, or is not a
// report of limited size.
func open(evidence v1alpha1.ClaimEvidence) (whole v1alpha1.Report, violations []error, err error) {
	content, err := expand(evidence)
	if err != nil {
		return whole, nil, err
	}
	if sum := digest(content); sum != evidence.SHA256 {
		return whole, nil, fmt.Errorf("the SHA-256 of the report is %s, and the claim states %s", sum, cmp.Or(evidence.SHA256, "none"))
	}
	if violations, err = decode(content, "report", v1alpha1.Kind, &whole); err != nil {
		return whole, nil, err
	}
	for _, cluster := range whole.Clusters {
		if len(cluster.Results) > maxResults {
			return whole, nil, fmt.Errorf("the report has more than %d results of a cluster", maxResults)
		}
	}
	return whole, violations, report.Check(whole)
}

// Encode writes a claim as JSON.
func Encode(w io.Writer, claim v1alpha1.ConformanceReport) error {
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(claim); err != nil {
		return fmt.Errorf("write claim: %w", err)
	}
	return nil
}
