package redact_test

import (
	"encoding/base64"
	"errors"
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
	"github.com/deletion-conformance/deletion-conformance/internal/clusters"
	"github.com/deletion-conformance/deletion-conformance/internal/redact"
)

const (
	token    = "hunter2hunter2"
	key      = "-----BEGIN EC PRIVATE KEY-----\nMHcCAQEEIIrYSSNQFaA2Hwf1\n-----END EC PRIVATE KEY-----"
	password = "swordfish"
	webToken = "eyJhbGciOiJSUzI1NiJ9.eyJpc3MiOiJrdWJlcm5ldGVz.c2lnbmF0dXJl"
)

// corporate returns a cluster whose kubeconfig contains everything that a report must not.
func corporate(t *testing.T) clusters.Cluster {
	t.Helper()
	g := NewWithT(t)
	tokenFile := filepath.Join(t.TempDir(), "token")
	g.Expect(os.WriteFile(tokenFile, []byte("rotated-token\n"), 0o600)).To(Succeed())
	config := clientcmdapi.NewConfig()
	config.Clusters["payments"] = &clientcmdapi.Cluster{
		Server: "https://joe:letmein@api.corp.example:6443", ProxyURL: "http://me:opensesame@proxy.corp.example:3128",
		CertificateAuthority: "/etc/corp/ca.crt",
	}
	config.AuthInfos["joe@corp"] = &clientcmdapi.AuthInfo{
		Token: token, TokenFile: tokenFile, Password: password, ClientKeyData: []byte(key),
		Exec: &clientcmdapi.ExecConfig{
			Command: "/opt/corp/bin/login", Env: []clientcmdapi.ExecEnvVar{{Name: "LOGIN_PASS", Value: "xyzzy"}, {Name: "REGION", Value: "eu"}},
		},
	}
	config.Contexts["prod"] = &clientcmdapi.Context{Cluster: "payments", AuthInfo: "joe@corp"}
	config.CurrentContext = "prod"
	kubeconfig, err := clientcmd.Write(*config)
	g.Expect(err).NotTo(HaveOccurred())
	return clusters.Cluster{Name: "prod", Kubeconfig: kubeconfig}
}

func TestWhatIsNotForEverybodyIsTakenOut(t *testing.T) {
	redactor, err := redact.For([]clusters.Cluster{corporate(t)}, false, "/opt/tools/kubectl")
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	home, err := os.UserHomeDir()
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	for _, test := range []struct{ name, text, want string }{
		{"nothing", `delete pods in namespace "dcx-1": /api/v1/namespaces/dcx-1/pods?limit=1`, `delete pods in namespace "dcx-1": /api/v1/namespaces/dcx-1/pods?limit=1`},
		{"the token", "no: " + token + " is bad", "no: [redacted] is bad"},
		{"the token of a file", "it said rotated-token", "it said [redacted]"},
		{"the password", "joe/" + password, "joe/[redacted]"},
		{"the key", "key: " + key + "!", "key: [redacted]!"},
		{"the key, encoded", base64.StdEncoding.EncodeToString([]byte(key)), "[redacted]"},
		{"another's certificate, cut", "-----BEGIN CERTIFICATE-----\nMIIB", "[redacted]"},
		{"a password of a plugin's", "LOGIN_PASS=xyzzy", "LOGIN_PASS=[redacted]"},
		{"a region is no password", "euphoria in eu", "euphoria in eu"},
		{"a web token", "got " + webToken + ".", "got [redacted]."},
		{"a header", "Authorization: Bearer abcdefghijklmnopqrstuvwxyz", "Authorization: [redacted]"},
		{"the bearer of news", "the bearer of bad news", "the bearer of bad news"},
		{"who a URL is asked as", `Get "https://someone:secret@host/x": EOF`, `Get "https://[redacted]@host/x": EOF`},
		{"the password of the server's URL", "letmein, opensesame", "[redacted], [redacted]"},
		{"an address of mail", "mail joe@host", "mail joe@host"},
		{"a file of the kubeconfig", "open /etc/corp/ca.crt: permission denied", "open ca.crt: permission denied"},
		{"a plugin", "exec: /opt/corp/bin/login failed", "exec: login failed"},
		{"kubectl", "run /opt/tools/kubectl", "run kubectl"},
		{"home", "read " + home + "/.kube/config", "read ~/.kube/config"},
		{"a temporary file", "open " + os.TempDir() + "/x/y.yaml", "open $TMPDIR/x/y.yaml"},
		{"a file of Go's", "goroutine 1:\n\t/home/build/src/main.go:17 +0x1", "goroutine 1:\n\tmain.go:17 +0x1"},
		{"where a spec stands", "suites/graceful/grace.go:17", "suites/graceful/grace.go:17"},
		{"names and addresses", `context prod on api.corp.example (192.0.2.7)`, `context prod on api.corp.example (192.0.2.7)`},
	} {
		t.Run(test.name, func(t *testing.T) {
			NewWithT(t).Expect(redactor.Text(test.text)).To(Equal(test.want))
		})
	}
}

func TestNamesAreReplacedOnDemand(t *testing.T) {
	other := corporate(t)
	other.Name = "payments" // the name of a cluster in the first kubeconfig
	redactor, err := redact.For([]clusters.Cluster{corporate(t), other}, true)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	for _, test := range []struct{ text, want string }{
		{`context "prod" of cluster payments`, `context "cluster-1" of cluster cluster-2`},
		{"production goes on", "production goes on"},
		{"https://api.corp.example:6443/api", "https://server-1:6443/api"},
		{"proxy.corp.example", "proxy-1"},
		{"dial tcp 10.1.2.3:6443: connection refused", "dial tcp address:6443: connection refused"},
		{"dial tcp [2001:db8::7]:6443", "dial tcp address:6443"},
		{"on [::1]:443 and 127.0.0.1", "on [::1]:443 and 127.0.0.1"},
		{"lookup api.other.example on 10.0.0.53:53: no such host", "lookup server on address:53: no such host"},
		{`User "joe@corp.example" cannot list pods`, `User "user" cannot list pods`},
		{"v1.36.3, 1.2.3", "v1.36.3, 1.2.3"},
	} {
		t.Run(test.text, func(t *testing.T) {
			NewWithT(t).Expect(redactor.Text(test.text)).To(Equal(test.want))
		})
	}
	NewWithT(t).Expect(redactor.Cluster("prod")).To(Equal("cluster-1"))
	NewWithT(t).Expect(redactor.Cluster("prod widgets.example.com")).To(Equal("cluster-1 widgets.example.com"), "a resource on it")
	NewWithT(t).Expect(redactor.Cluster("payments")).To(Equal("cluster-2"))
}

func TestAReportIsRedactedEverywhereAndTheOriginalIsNot(t *testing.T) {
	g := NewWithT(t)
	redactor, err := redact.For([]clusters.Cluster{corporate(t)}, true)
	g.Expect(err).NotTo(HaveOccurred())
	text := "prod said " + token
	original := v1alpha1.Report{Clusters: []v1alpha1.Cluster{{
		Name: "prod", Problem: text, Capabilities: []v1alpha1.Capability{{Feature: "prod", Reason: text}},
		Results: []v1alpha1.Result{{
			Behavior: v1alpha1.Behavior{ID: "prod", Statement: "prod"}, Outcome: "prod", Reason: text,
			Failure:  &v1alpha1.Failure{Message: text, Explanation: []string{text}},
			Timeline: v1alpha1.Timeline{Requests: []v1alpha1.Request{{Path: text, Body: text, Warnings: []string{text}}}, Reviews: []v1alpha1.Review{{Message: text}}},
		}},
	}}}

	redacted, err := redactor.Report(original)

	g.Expect(err).NotTo(HaveOccurred())
	const clean = "cluster-1 said [redacted]"
	cluster := redacted.Clusters[0]
	g.Expect(cluster.Name).To(Equal("cluster-1"))
	g.Expect(cluster.Capabilities).To(HaveExactElements(v1alpha1.Capability{Feature: "prod", Reason: clean}))
	result := cluster.Results[0]
	g.Expect(result.Behavior).To(Equal(original.Clusters[0].Results[0].Behavior), "the catalogue's words stay")
	g.Expect(result.Outcome).To(BeEquivalentTo("prod"))
	g.Expect([]string{cluster.Problem, result.Reason, result.Failure.Message, result.Failure.Explanation[0],
		result.Timeline.Requests[0].Path, result.Timeline.Requests[0].Body, result.Timeline.Requests[0].Warnings[0], result.Timeline.Reviews[0].Message,
	}).To(HaveEach(clean))
	g.Expect(original.Clusters[0].Results[0].Failure.Explanation[0]).To(Equal(text))
}

func TestErrorsStayWhatTheyAre(t *testing.T) {
	g := NewWithT(t)
	cause := errors.New("cause")
	redacted := (&redact.Redactor{}).Error(errors.Join(cause, errors.New("https://a:b@c/")))
	g.Expect(redacted).To(MatchError(cause))
	g.Expect(redacted.Error()).To(Equal("cause\nhttps://[redacted]@c/"))
	g.Expect((&redact.Redactor{}).Error(nil)).To(Succeed())
}
