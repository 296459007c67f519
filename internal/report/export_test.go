package report

// Measured lets the tests see the figures that a report is written with.
var Measured = measured
