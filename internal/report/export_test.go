package report

// Measured lets the tests see the figures that a report is written with.
func Measured(r Report) Report { return r.measured() }
