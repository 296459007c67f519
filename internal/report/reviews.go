package report

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
)

func reviewLines(reviews []v1alpha1.Review) []line {
	var lines []line
	for _, review := range reviews {
		if !review.Object.Canary {
			lines = append(lines, line{review.At, reviewLine(review)})
		}
	}
	return lines
}

// reviewLine describes a webhook review and its response: `webhook asked: DELETE Pod ns/p (uid 1234) by system:node:a, gracePeriodSeconds 0
// -> allowed`.
func reviewLine(review v1alpha1.Review) string {
	asked := fmt.Sprintf("webhook asked: %s %s by %s", review.Operation, objectText(review.Object), Reviewed(review))
	return strings.Join(append([]string{asked}, ReviewDetails(review)...), ", ") + " -> " + answerText(review)
}

func answerText(review v1alpha1.Review) string {
	if review.Allowed {
		return "allowed"
	}
	return strings.TrimSuffix("denied: "+review.Message, ": ")
}

// Reviewed returns the user of a reviewed request.
func Reviewed(review v1alpha1.Review) string { return cmp.Or(review.User, "the run itself") }

// ReviewDetails lists the details of a review in the API's terms, and of the stored object at that time.
func ReviewDetails(review v1alpha1.Review) []string {
	var details []string
	if review.Subresource != "" {
		details = append(details, "subresource "+review.Subresource)
	}
	if review.DryRun {
		details = append(details, "a dry-run")
	}
	if review.GraceSeconds != nil {
		details = append(details, fmt.Sprintf("gracePeriodSeconds %d", *review.GraceSeconds))
	}
	if review.PropagationPolicy != "" {
		details = append(details, "propagationPolicy "+review.PropagationPolicy)
	}
	if conditions := review.Preconditions; conditions != nil && conditions.UID != nil {
		details = append(details, "preconditions.uid "+string(*conditions.UID))
	}
	if conditions := review.Preconditions; conditions != nil && conditions.ResourceVersion != nil {
		details = append(details, "preconditions.resourceVersion "+*conditions.ResourceVersion)
	}
	if review.StoredGraceSeconds != nil {
		details = append(details, fmt.Sprintf("stored as terminating with deletionGracePeriodSeconds %d", *review.StoredGraceSeconds))
	}
	return details
}
