// Package v1alpha1 is the report of a run as an API: report.json is a Report, and every other form (JUnit, the page, the
// summary) is made from one. It is plain data, and imports nothing of the program that writes it.
package v1alpha1
