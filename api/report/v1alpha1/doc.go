// Package v1alpha1 is the report of a run as an API: report.json contains a Report, and every other format (JUnit, HTML, Markdown) is derived
// from one. It contains only data, and does not import the runner.
package v1alpha1
