package ctrf

// document is a CTRF document; see https://ctrf.io/docs/specification/overview.
type document struct {
	ReportFormat string  `json:"reportFormat"`
	SpecVersion  string  `json:"specVersion"`
	RunID        string  `json:"runId,omitempty"`
	Timestamp    string  `json:"timestamp"`
	GeneratedBy  string  `json:"generatedBy"`
	Results      results `json:"results"`
}

type results struct {
	Tool        tool        `json:"tool"`
	Summary     summary     `json:"summary"`
	Tests       []test      `json:"tests"`
	Environment environment `json:"environment"`
}

type tool struct {
	Name    string `json:"name"`
	Version string `json:"version,omitempty"`
}

// summary counts tests. Times are in milliseconds since 1970, the duration is in milliseconds.
type summary struct {
	Tests    int          `json:"tests"`
	Passed   int          `json:"passed"`
	Failed   int          `json:"failed"`
	Skipped  int          `json:"skipped"`
	Pending  int          `json:"pending"`
	Other    int          `json:"other"`
	Suites   int          `json:"suites"`
	Start    int64        `json:"start"`
	Stop     int64        `json:"stop"`
	Duration int64        `json:"duration"`
	Extra    summaryExtra `json:"extra"`
}

type summaryExtra struct {
	// NotSelected is the number of behaviors that are no tests, because they were not selected.
	NotSelected int `json:"notSelected"`
	// Verdict is the conclusion of the run on its clusters, with the reason.
	Verdict string `json:"verdict"`
}

// test is one behavior on one cluster. Times are as in summary.
type test struct {
	// TestID is the same in every run.
	TestID    string   `json:"testId"`
	Name      string   `json:"name"`
	Status    status   `json:"status"`
	RawStatus string   `json:"rawStatus"`
	Duration  int64    `json:"duration"`
	Start     int64    `json:"start,omitempty"`
	Stop      int64    `json:"stop,omitempty"`
	Suite     []string `json:"suite"`
	Message   string   `json:"message,omitempty"`
	// Trace is the evidence of a failure.
	Trace         string         `json:"trace,omitempty"`
	Type          string         `json:"type"`
	FilePath      string         `json:"filePath,omitempty"`
	Line          int            `json:"line,omitempty"`
	Labels        map[string]any `json:"labels,omitempty"`
	Retries       int            `json:"retries,omitempty"`
	RetryAttempts []attempt      `json:"retryAttempts,omitempty"`
}

// attempt is an attempt before the last one.
type attempt struct {
	Attempt  int    `json:"attempt"`
	Status   status `json:"status"`
	Message  string `json:"message,omitempty"`
	Duration int64  `json:"duration"`
	Start    int64  `json:"start,omitempty"`
	Stop     int64  `json:"stop,omitempty"`
}

type environment struct {
	ReportName string `json:"reportName"`
	// AppName and AppVersion are the tested cluster, if there is only one.
	AppName    string           `json:"appName,omitempty"`
	AppVersion string           `json:"appVersion,omitempty"`
	ShardID    string           `json:"shardId,omitempty"`
	Healthy    bool             `json:"healthy"`
	Extra      environmentExtra `json:"extra"`
}

type environmentExtra struct {
	Clusters []cluster `json:"clusters"`
}

type cluster struct {
	Name           string `json:"name"`
	Resource       string `json:"resource,omitempty"`
	ServerVersion  string `json:"serverVersion,omitempty"`
	NodeRuntime    string `json:"nodeRuntime,omitempty"`
	KubectlVersion string `json:"kubectlVersion,omitempty"`
	Preflight      string `json:"preflight,omitempty"`
	Warning        string `json:"warning,omitempty"`
	LeftBehind     string `json:"leftBehind,omitempty"`
	Kept           string `json:"kept,omitempty"`
}
