// Package admission recognizes the effects of admission on a request: a refusal, or a changed object.
package admission

import (
	"cmp"
	"fmt"
	"regexp"
	"strings"
)

// Refusal is the refusal of a request by admission.
type Refusal struct {
	// Plugin is the kind of the policy, the webhook, or the admission plugin.
	Plugin string
	// Name is the name of the policy, the webhook or the quota; empty for plugins that do not name one.
	Name string
	// Message is the message of the refusal, on one line.
	Message string
	// OnlyDryRun is set when a webhook refused the request only because it is a dry-run.
	OnlyDryRun bool
	// Failed is set when the API server could not call a webhook.
	Failed bool
}

// String names the plugin and quotes the message.
func (r Refusal) String() string {
	by := r.Plugin
	if r.Name != "" {
		by = fmt.Sprintf("%s %q", r.Plugin, r.Name)
	}
	return strings.TrimSuffix(fmt.Sprintf("refused by %s: %s", by, r.Message), ": ")
}

// The plugins whose refusals are recognized.
const (
	ValidatingPolicy = "ValidatingAdmissionPolicy"
	MutatingPolicy   = "MutatingAdmissionPolicy"
	Webhook          = "webhook"
	ResourceQuota    = "ResourceQuota"
	LimitRange       = "LimitRange"
	PodSecurity      = "PodSecurity"
	SCC              = "SecurityContextConstraints"
	// Unknown is a plugin that does not name itself.
	Unknown = "an admission plugin"
)

// format is the format of a plugin's refusals. The groups name and message become the fields of the Refusal.
type format struct {
	plugin     string
	text       *regexp.Regexp
	onlyDryRun bool
	failed     bool
}

// formats are those of the API server of Kubernetes 1.26 to 1.37 (apiserver/pkg/admission/plugin, kubernetes/plugin/pkg/admission and
// pod-security-admission/admission) and of OpenShift.
var formats = []format{
	{plugin: ValidatingPolicy, text: regexp.MustCompile(`(?s)ValidatingAdmissionPolicy '(?P<name>[^']+)'(?: with binding '[^']*')? denied request: ?(?P<message>.*)`)},
	{plugin: MutatingPolicy, text: regexp.MustCompile(`(?s)\bpolicy ['"](?P<name>[^'"]+)['"](?: with binding '[^']*')? denied request: ?(?P<message>.*)`)},
	{plugin: Webhook, text: regexp.MustCompile(`(?s)admission webhook "(?P<name>[^"]+)" denied the request:? ?(?P<message>.*)`)},
	{plugin: Webhook, text: regexp.MustCompile(`(?s)(?P<message>failed calling webhook "(?P<name>[^"]+)".*)`), failed: true},
	{plugin: Webhook, text: regexp.MustCompile(`(?s)(?P<message>admission webhook "(?P<name>[^"]+)" does not support dry run.*)`), onlyDryRun: true},
	{plugin: Webhook, text: regexp.MustCompile(`(?s)(?P<message>admission webhook "(?P<name>[^"]+)" attempted to modify the object.*)`)},
	{plugin: ResourceQuota, text: regexp.MustCompile(`(?s)is forbidden: (?P<message>(?:exceeded|failed) quota: (?P<name>[^:,]+)[:,].*)`)},
	{plugin: ResourceQuota, text: regexp.MustCompile(`(?s)is forbidden: (?P<message>status unknown for quota: (?P<name>[^:,]+),.*)`)},
	{plugin: ResourceQuota, text: regexp.MustCompile(`(?s)is forbidden: (?P<message>insufficient quota to (?:consume|match these scopes): .*)`)},
	{plugin: LimitRange, text: regexp.MustCompile(`(?s)is forbidden: \[?(?P<message>(?:minimum|maximum) \S+ usage per \S+ is .*)`)},
	{plugin: LimitRange, text: regexp.MustCompile(`(?s)is forbidden: \[?(?P<message>\S+ max limit to request ratio per \S+ is .*)`)},
	{plugin: PodSecurity, text: regexp.MustCompile(`(?s)(?P<message>violates PodSecurity ".*)`)},
	{plugin: SCC, text: regexp.MustCompile(`(?s)(?P<message>unable to validate against any (?:pod security policy|security context constraint).*)`)},
}

// Read parses the message of a refused request, or of a controller's event. It reports false for refusals that do not come from admission.
func Read(message string) (Refusal, bool) {
	for _, format := range formats {
		found := format.text.FindStringSubmatch(message)
		if found == nil {
			continue
		}
		refusal := Refusal{Plugin: format.plugin, OnlyDryRun: format.onlyDryRun, Failed: format.failed}
		if i := format.text.SubexpIndex("name"); i >= 0 {
			refusal.Name = found[i]
		}
		refusal.Message = oneLine(found[format.text.SubexpIndex("message")])
		return refusal, true
	}
	return Refusal{}, false
}

// forbidden is the prefix of the API server's messages with status 403.
var forbidden = regexp.MustCompile(`(?s)^.*? is forbidden: `)

// Unattributed returns the refusal of a request that the authorizer allows, by a plugin that does not name itself.
func Unattributed(message string) Refusal {
	return Refusal{Plugin: Unknown, Message: oneLine(cmp.Or(forbidden.ReplaceAllString(message, ""), message))}
}

// messageLimit limits quoted messages, in bytes.
const messageLimit = 300

// oneLine joins the lines of a message and shortens it.
func oneLine(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	if len(text) > messageLimit {
		text = strings.ToValidUTF8(text[:messageLimit], "") + "..."
	}
	return text
}
