package reporttest

import (
	"strconv"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
	"github.com/deletion-conformance/deletion-conformance/internal/report"
)

// Hostile are texts that try to break out of every format of a report. A cluster under test may use them in names, messages and warnings.
var Hostile = []string{
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
	"[[ATTACHMENT|/etc/passwd]]\n[[attachment|../id_rsa]] [[[ATTACHMENT|/etc/shadow]]",
	"::add-mask::x\n \u00a0::error::x\r::set-output name=a::x\u2028::save-state name=a::x\r\n::group::x ::not at the start",
	"##[add-mask]x ###[command]y a##vso[task.setvariable variable=a]x\n##VSO[a]##teamcity[a]",
	"__proto__", "constructor", "toString", "",
}

// WithText returns a report with the text in every place whose content a cluster, a kubeconfig or a suite controls.
func WithText(text string) v1alpha1.Report {
	r := Sample()
	cluster := r.Clusters[0]
	cluster.Name, cluster.ServerVersion, cluster.NodeRuntime, cluster.Problem = text, text, text, "problem: "+text
	cluster.KubectlVersion, cluster.Warning, cluster.LeftBehind, cluster.Kept = text, text, text, text
	cluster.Figures = append(cluster.Figures, v1alpha1.Figure{Operation: v1alpha1.FinalizerRelease, Finalizer: text, Count: 1})
	for i := range cluster.Preflight {
		cluster.Preflight[i].Cause, cluster.Preflight[i].Effect, cluster.Preflight[i].Remedy = text, text, text
	}
	for i := range cluster.Features {
		cluster.Features[i].Reason = text
	}
	for i := range cluster.Results {
		result := &cluster.Results[i]
		result.ID = "cascade.hostile.n" + strconv.Itoa(i)
		result.Statement, result.Reason = text, text
		result.Failure = &v1alpha1.Failure{Message: text, Cause: text, Location: text, Explanation: []string{text, text}}
		result.Tries = []v1alpha1.Try{{Reason: text}}
		result.Timeline = Timeline(text, text+"2")
		for j := range result.Timeline.Requests {
			request := &result.Timeline.Requests[j]
			request.Path, request.Body, request.Refusal, request.Warnings = "/"+text, text, text, []string{text}
		}
		result.Timeline.Reviews = []v1alpha1.Review{{
			At: Start, Operation: text, Object: result.Timeline.Events[0].ObjectReference, Subresource: text, User: text, Message: text,
		}}
		for j := range result.Timeline.Events {
			event := &result.Timeline.Events[j]
			event.Kind, event.Finalizers, event.Phase, event.Containers = text, []string{text}, text, []string{text}
			event.Writers, event.Changes, event.Released = []string{text}, []string{text}, []v1alpha1.Release{{Finalizer: text, SetBy: []string{text}}}
		}
	}
	r.Clusters = []v1alpha1.Cluster{cluster}
	r.LeftOut = []v1alpha1.LeftOut{{Cluster: text, Resource: text, Reason: text}}
	return report.Concluded(r)
}
