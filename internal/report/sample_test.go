package report_test

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/deletion-conformance/deletion-conformance/framework"
	"github.com/deletion-conformance/deletion-conformance/internal/report"
)

var sampleStart = time.Date(2026, 3, 4, 5, 6, 7, 890_000_000, time.UTC)

// sample is a report in which every outcome occurs, on two clusters, and a third one that could not be judged.
func sample() report.Report {
	return report.Report{
		APIVersion: report.APIVersion,
		Kind:       report.Kind,
		RunID:      "k7d2m",
		Runner:     "v0.1.0",
		Start:      sampleStart,
		End:        sampleStart.Add(12345 * time.Millisecond),
		Clusters: []report.Cluster{
			{
				Name:          "kind-a",
				ServerVersion: "v1.36.3",
				NodeRuntime:   "containerd://1.6.20",
				Capabilities:  []report.Capability{{Need: framework.GC, Present: true}, {Need: framework.Node, Reason: "no node is ready"}},
				Results: []report.Result{
					result("cascade.background.owner-goes-first", "lets the owner go first", report.Passed),
					failed(result("cascade.foreground.blocking-dependents-first", "outlives every blocking dependent", report.Failed)),
					failed(result("cascade.foreground.repeated-with-finalizer", "leaves no foregroundDeletion behind", report.Deviated)),
					reason(result("cascade.orphan.one-level", "leaves grandchildren their owner", report.Errored), "connection refused"),
					reason(result("graceful.default-thirty", "gives thirty seconds", report.Interrupted), "stopped by SIGINT"),
					reason(unstarted("graceful.node.forced", "is refused", report.Skipped), "no node is ready"),
					unstarted("graceful.only-pods", "is refused", report.Filtered),
					unstarted("graceful.zero-is-now", "removes a scheduled pod at once", report.Interrupted),
				},
			},
			{
				Name:          "arn:aws:eks:eu-central-1:123:cluster/prod",
				ServerVersion: "v1.34.4",
				Results:       []report.Result{result("cascade.background.owner-goes-first", "lets the owner go first", report.Passed)},
			},
			{Name: "gone", Problem: "dial tcp 10.0.0.1:6443: connect: connection refused; is the kubeconfig current?"},
		},
	}
}

func unstarted(id, statement string, outcome report.Outcome) report.Result {
	return report.Result{
		Contract: framework.Contract{
			ID: id, Statement: statement, Level: framework.Core, Needs: []framework.Need{framework.API, framework.GC},
			File: "suites/cascade/foreground.go", Line: 42,
		},
		Outcome: outcome,
	}
}

func result(id, statement string, outcome report.Outcome) report.Result {
	r := unstarted(id, statement, outcome)
	r.Start, r.Seconds, r.Timeline = sampleStart.Add(time.Second), 1.5, timeline("owner", "child")
	return r
}

func reason(r report.Result, text string) report.Result {
	r.Reason = text
	return r
}

func failed(r report.Result) report.Result {
	r.Failure = &report.Failure{
		Message:     "Expected the owner to be deleted last\n    <string>: DELETED owner\nto come after\n    <string>: DELETED child",
		Location:    "suites/cascade/foreground.go:57",
		Explanation: []string{"ConfigMap child: finalizers deletion-conformance.github.io/hold"},
	}
	return r
}

// timeline is a foreground delete of an owner with one dependent.
func timeline(owner, child string) framework.Timeline {
	at := func(ms int) time.Time { return sampleStart.Add(time.Duration(ms) * time.Millisecond) }
	deleting := metav1.NewTime(sampleStart)
	blocking, grace := true, int64(0)
	reference := []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: owner, UID: "11111111-aaaa", BlockOwnerDeletion: &blocking}}
	seen := func(ms int, event, name string, uid types.UID) framework.Observation {
		return framework.Observation{At: at(ms), Type: event, Kind: "ConfigMap", Namespace: "dc-k7d2m-1", Name: name, UID: uid}
	}
	terminating := seen(14, "MODIFIED", owner, "11111111-aaaa")
	terminating.DeletionTimestamp, terminating.GraceSeconds = &deleting, &grace
	terminating.Finalizers = []string{metav1.FinalizerDeleteDependents}
	born := seen(6, "ADDED", child, "22222222-bbbb")
	born.Owners = reference
	gone := seen(40, "DELETED", child, "22222222-bbbb")
	gone.Owners = reference
	return framework.Timeline{
		Requests: []framework.Request{
			{At: at(0), Verb: "POST", Path: "/api/v1/namespaces/dc-k7d2m-1/configmaps", Body: `{"metadata":{"name":"` + owner + `"}}`, Status: 201, Latency: 3 * time.Millisecond},
			{At: at(10), Verb: "DELETE", Path: "/api/v1/namespaces/dc-k7d2m-1/configmaps/" + owner, Body: `{"propagationPolicy":"Foreground"}`, Status: 200, Latency: 2 * time.Millisecond, Warnings: []string{"mind the gap"}},
			{At: at(20), Verb: "PATCH", Path: "/api/v1/namespaces/dc-k7d2m-1/configmaps/" + owner, Status: 422, Latency: time.Millisecond, Refusal: "metadata.finalizers: Forbidden"},
			{At: at(30), Verb: "GET", Path: "/api/v1/namespaces/dc-k7d2m-1/configmaps/" + owner, Error: "EOF"},
		},
		Events: []framework.Observation{seen(4, "ADDED", owner, "11111111-aaaa"), born, terminating, gone, seen(55, "DELETED", owner, "11111111-aaaa")},
	}
}

// hostile are texts worded to break out of every form a report takes. A cluster under test may put any of them into
// names, messages and warnings.
var hostile = []string{
	`</script><script>alert(1)</script>`,
	`<img src=x onerror=alert(1)>`,
	`"><svg onload=alert(1)>`,
	`' onmouseover='alert(1)`,
	`<!-- --><![CDATA[ ]]> ]]]]><![CDATA[> <?xml version="1.0"?>`,
	`<!DOCTYPE x [<!ENTITY e SYSTEM "file:///etc/passwd">]>&e; &lt;b&gt; &#60;i&#62;`,
	"a | b | c\n|---|\n# heading\n- list\n> quote\n\n    code",
	"``` \n````\n~~~\n</details></summary> `code` **bold** __bold__ [link](javascript:alert(1)) ![i](http://x/y.png)",
	`https://evil.example www.evil.example me@evil.example @everyone #1 :tada: $x^2$ \| \\| \`,
	"\x1b[31mred\x1b[0m \x1b]0;title\x07 \x1b]8;;http://evil\x07link\x9b1m \u009b31m \u0085 \x7f \x00 \b\b\b",
	"\u202egnp.exe\u202c \u2066a\u2069 \u200b \ufeff \u2028 \u2029 \ufffe \uffff \ufdd0 \U0010ffff \U000e0041",
	"broken \xff\xfe UTF-8 \xed\xa0\x80 lone surrogate \xf0\x9f half",
	"line\r\nends\rof \tevery\vkind\f",
	"{{.}} {{template \"x\"}} ${x} <%= x %> %s %!d(MISSING)",
	"__proto__", "constructor", "toString", "",
}
