package site

import (
	"fmt"
	"html"
	"unicode/utf8"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
)

const (
	// letterWidth is the width of a letter of a badge in pixels, and badgePadding the space around a text.
	letterWidth, badgePadding = 6.6, 12
)

// badgeColors are the grounds of conclusions. White text on each has a contrast of at least 4.5, as WCAG AA requires.
var badgeColors = map[v1alpha1.ProfileConclusion]string{
	v1alpha1.ProfilePassed: "#1b6e45", v1alpha1.ProfilePartial: "#7d5200", v1alpha1.ProfileFailed: "#b3231b",
}

// badgeName is the file of a badge.
func badgeName(slug string, profile v1alpha1.Profile) string {
	return fmt.Sprintf("%s-%s.svg", slug, profile)
}

// badgeOf returns the badge of a profile as SVG: "deletion api: passed", with the remark on its claim, if any.
func badgeOf(result v1alpha1.ProfileResult, remark string) []byte {
	label, value := "deletion "+string(result.Profile), string(result.Conclusion)
	if remark != "" {
		value += " (" + remark + ")"
	}
	left := float64(utf8.RuneCountInString(label))*letterWidth + badgePadding
	right := float64(utf8.RuneCountInString(value))*letterWidth + badgePadding
	text := html.EscapeString(label + ": " + value)
	return fmt.Appendf(nil, `<svg xmlns="http://www.w3.org/2000/svg" width="%.0[1]f" height="20" role="img" aria-label="%[2]s"><title>%[2]s</title>`+
		`<rect width="%.0[1]f" height="20" rx="3" fill="#3d424a"/><path d="M%.0[3]f 0h%.0[4]fa3 3 0 0 1 3 3v14a3 3 0 0 1-3 3h-%.0[4]fz" fill="%[5]s"/>`+
		`<g fill="#fff" text-anchor="middle" font-family="Verdana,DejaVu Sans,sans-serif" font-size="11">`+
		`<text x="%.1[6]f" y="14">%[7]s</text><text x="%.1[8]f" y="14">%[9]s</text></g></svg>`+"\n",
		left+right, text, left, right-3, badgeColors[result.Conclusion], left/2, html.EscapeString(label), left+right/2, html.EscapeString(value))
}
