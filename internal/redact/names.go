package redact

import (
	"fmt"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strings"

	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// standIn adds the replacement of a name, unless it has one.
func (r *Redactor) standIn(name, replacement string) {
	if _, known := r.standIns[name]; name != "" && !known {
		r.standIns[name] = replacement
	}
}

// name adds replacements for the names in a kubeconfig.
func (r *Redactor) name(kubeconfig *clientcmdapi.Config, number int) {
	add := func(kind string, names ...string) {
		for _, name := range names {
			r.standIn(name, fmt.Sprintf("%s-%d", kind, number))
		}
	}
	for name, context := range kubeconfig.Contexts {
		add("cluster", name)
		add("namespace", context.Namespace)
	}
	for entry, server := range kubeconfig.Clusters {
		add("server", hostOf(server.Server), server.TLSServerName)
		add("proxy", hostOf(server.ProxyURL))
		add("cluster", entry)
	}
	for entry, user := range kubeconfig.AuthInfos {
		add("user", entry, user.Username, user.Impersonate, user.ImpersonateUID)
		add("group", user.ImpersonateGroups...)
		for _, extra := range user.ImpersonateUserExtra {
			add("extra", extra...)
		}
	}
}

func hostOf(address string) string {
	parsed, err := url.Parse(address)
	if err != nil {
		return ""
	}
	return parsed.Hostname()
}

// anyOf returns a pattern for names in any case and in common encodings that are not part of a word. Its second group is the name.
func anyOf(standIns map[string]string) *regexp.Regexp {
	var names []string
	for name := range standIns {
		if !isCommon(name) {
			names = append(names, escaped(name)...)
		}
	}
	patterns := []string{`$.`} // which never matches
	for _, name := range distinct(names) {
		patterns = append(patterns, regexp.QuoteMeta(name))
	}
	// A percent-encoded or escaped character before a name ends with a letter.
	return regexp.MustCompile(`(?i)(^|[^\pL\pN]|%[0-9a-f]{2}|\\[nrt]|\\u[0-9a-f]{4})(` + strings.Join(patterns, "|") + `)(?:[^\pL\pN]|$)`)
}

// withoutNames replaces names. What ends one name may begin the next.
func (r *Redactor) withoutNames(text string) string {
	var replaced strings.Builder
	for {
		found := r.names.FindStringSubmatchIndex(text)
		if found == nil {
			return replaced.String() + text
		}
		replaced.WriteString(text[:found[4]] + r.replacementOf(text[found[4]:found[5]]))
		text = text[found[5]:]
	}
}

// replacementOf returns the replacement of a name as it was found.
func (r *Redactor) replacementOf(found string) string {
	if replacement := r.standIns[found]; replacement != "" {
		return replacement
	}
	for name, replacement := range r.standIns {
		if slices.ContainsFunc(escaped(name), func(form string) bool { return strings.EqualFold(form, found) }) {
			return replacement
		}
	}
	return removed
}

var (
	// numeric matches what may be an IPv4 address, and colons an IPv6 address with what precedes it.
	numeric = regexp.MustCompile(`\d+(\.\d+){3,}`)
	colons  = regexp.MustCompile(`[\w.:]*:[\w.:]*(%\w+)?`)
	// bracketed matches an IPv6 address in brackets.
	bracketed = regexp.MustCompile(`\[[0-9a-fA-F:.]{2,}(%\w+)?\]`)
	// dashed matches the names of nodes and pods that contain an address, such as ip-10-1-2-3.ec2.internal and 10-1-2-3.namespace.pod.
	dashed = regexp.MustCompile(`\b([a-zA-Z][\w-]*-)?(\d{1,3}(?:-\d{1,3}){3})((?:[.-][a-zA-Z0-9][\w-]*)*)`)
	// dashedPod matches the name of a pod with an IPv6 address.
	dashedPod = regexp.MustCompile(`\b([0-9a-fA-F]*(?:-[0-9a-fA-F]*){2,7})\.[\w-]+\.pod\b(\.[\w-]+)*`)
	// hosts matches the hosts of URLs, and qualified other names, which are hosts if they have a port or are in a domain that is not public.
	hosts     = regexp.MustCompile(`(\w://(?:\[redacted\]@)?)([\w.-]+)`)
	qualified = regexp.MustCompile(`\b([\w-]+(?:\.[\w-]+)+)(:\d{2,5}\b)?`)
	internal  = regexp.MustCompile(`(?i)\.(svc|svc\.cluster\.local|internal|local|localdomain|lan|corp|intra|intranet)$`)
	// lookups matches the name of a DNS lookup, and certificates the names in errors about a certificate.
	lookups      = regexp.MustCompile(`\blookup \S+`)
	certificates = regexp.MustCompile(`(certificate is valid for ).*?(, not )\S+`)
	wanted       = regexp.MustCompile(`(wanted to match )\S+`)
	// accounts matches users and groups of Kubernetes that contain names of the cluster.
	accounts = regexp.MustCompile(`\bsystem:(serviceaccounts?|node|bootstrap):[\w.:-]*\w`)
	// quotedUsers and plainUsers match the user in a refusal of an API server, and in the formats of Go and JSON.
	quotedUsers = regexp.MustCompile("(?i)\\b(user(?:name)?)(\\\\*[\"']?\\s*[:=]?\\s*)(\\\\*[\"'`‘“])([^\"'`’”\\\\]+)")
	plainUsers  = regexp.MustCompile(`(?i)\b(user(?:name)?[:=]\s?|user )([^\s"'` + "`" + `,;{}()\[\]\\]+)(,|;|\}|\)|\]|$| (?:cannot|can't|is not|does not|has no|may not|is forbidden|was denied|from)\b)`)
)

// publicHosts are the hosts of documentation in messages.
var publicHosts = []string{"kubernetes.io", "www.kubernetes.dev", "github.com", "localhost"}

// withoutAddresses removes network details: addresses, hosts and users.
func withoutAddresses(text string) string {
	text = bracketed.ReplaceAllStringFunc(text, func(found string) string { return address(found, strings.Trim(found, "[]")) })
	text = colons.ReplaceAllStringFunc(text, withoutIPv6)
	text = numeric.ReplaceAllStringFunc(text, func(found string) string { return address(found, found) })
	text = dashed.ReplaceAllStringFunc(text, func(found string) string {
		return address(found, strings.ReplaceAll(dashed.FindStringSubmatch(found)[2], "-", "."))
	})
	text = dashedPod.ReplaceAllStringFunc(text, func(found string) string {
		return address(found, strings.ReplaceAll(dashedPod.FindStringSubmatch(found)[1], "-", ":"))
	})
	text = certificates.ReplaceAllString(text, "${1}server${2}server")
	text = wanted.ReplaceAllString(text, "${1}server")
	text = hosts.ReplaceAllStringFunc(text, func(found string) string {
		parts := hosts.FindStringSubmatch(found)
		return parts[1] + server(parts[2])
	})
	text = qualified.ReplaceAllStringFunc(text, func(found string) string {
		host, port, isHost := strings.Cut(found, ":")
		switch {
		case isHost:
			return server(host) + ":" + port
		case internal.MatchString(host):
			return server(host)
		}
		return found
	})
	text = lookups.ReplaceAllString(text, "lookup server")
	text = quotedUsers.ReplaceAllStringFunc(text, func(found string) string {
		parts := quotedUsers.FindStringSubmatch(found)
		return parts[1] + parts[2] + parts[3] + userReplacement(parts[4])
	})
	text = plainUsers.ReplaceAllStringFunc(text, func(found string) string {
		parts := plainUsers.FindStringSubmatch(found)
		return parts[1] + userReplacement(parts[2]) + parts[3]
	})
	return accounts.ReplaceAllStringFunc(text, func(found string) string {
		if builtIn(found) {
			return found
		}
		return accounts.ReplaceAllString(found, "system:$1:user")
	})
}

// address returns the replacement of a text that contains this address; the text itself if it is none, or a local one.
func address(found, contained string) string {
	parsed, err := netip.ParseAddr(contained)
	if err != nil || parsed.IsLoopback() || parsed.IsUnspecified() {
		return found
	}
	return "address"
}

// withoutIPv6 replaces the address at the end of a text without spaces, such as 2001:db8::7 and ip:2001:db8::7.
func withoutIPv6(found string) string {
	text := strings.TrimRight(found, ".")
	for from := range text {
		if from > 0 && text[from-1] != ':' && text[from-1] != '.' {
			continue
		}
		for _, candidate := range []string{text[from:], strings.TrimSuffix(text[from:], ":")} {
			if _, err := netip.ParseAddr(candidate); err == nil && strings.Contains(candidate, ":") {
				return found[:from] + address(candidate, candidate) + found[from+len(candidate):]
			}
		}
	}
	return found
}

// server returns the replacement of a host; the host itself if it is local or public, or was replaced.
func server(host string) string {
	if parsed, err := netip.ParseAddr(host); err == nil && parsed.IsLoopback() {
		return host
	}
	if slices.Contains(publicHosts, host) || replacedHosts.MatchString(host) || sourceFiles.MatchString(host) {
		return host
	}
	return "server"
}

var (
	replacedHosts = regexp.MustCompile(`^(address|server|cluster-\d+|server-\d+|proxy-\d+|namespace-\d+)$`)
	// sourceFiles matches files, whose lines look like ports.
	sourceFiles = regexp.MustCompile(`\.(go|s|c|h|ya?ml|json|xml|md|html)$`)
)

var (
	replacedUsers = regexp.MustCompile(`^(user|user-\d+|namespace-\d+)$`)
	// controllers matches the users of Kubernetes' own controllers and components, which every cluster has.
	controllers = regexp.MustCompile(`^system:(serviceaccount:kube-system:([a-z0-9-]+-controller|[a-z0-9-]+-collector)|apiserver|kube-controller-manager|kube-scheduler|anonymous)$`)
)

// builtIn reports whether a user is one that every cluster has.
func builtIn(user string) bool { return controllers.MatchString(user) }

// userReplacement returns the replacement of a user; the user itself if every cluster has it, or it was replaced.
func userReplacement(user string) string {
	if builtIn(user) || replacedUsers.MatchString(user) {
		return user
	}
	return "user"
}
