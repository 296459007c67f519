package redact_test

import (
	"encoding/base64"
	"errors"
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
	"github.com/deletion-conformance/deletion-conformance/internal/kube/clusters"
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
		Impersonate: "alice@acme", ImpersonateUID: "uid-of-alice", ImpersonateGroups: []string{"acme:staff", "system:masters"},
		ImpersonateUserExtra: map[string][]string{"acme.example/cost-center": {"cc-4400"}},
		Token:                token, TokenFile: tokenFile, Password: password, ClientKeyData: []byte(key),
		Exec: &clientcmdapi.ExecConfig{
			Command: "/opt/corp/bin/login", Args: []string{"get", "--client-secret", "s3same", "--pin=4711", "--region", "eu", "kubernetes", "grant/7f3a9c"}, Env: []clientcmdapi.ExecEnvVar{{Name: "LOGIN_PASS", Value: "xyzzy"}, {Name: "REGION", Value: "eu"}},
		},
	}
	config.Contexts["prod"] = &clientcmdapi.Context{Cluster: "payments", AuthInfo: "joe@corp", Namespace: "billing"}
	config.CurrentContext = "prod"
	kubeconfig, err := clientcmd.Write(*config)
	g.Expect(err).NotTo(HaveOccurred())
	return clusters.Cluster{Name: "prod", Kubeconfig: kubeconfig}
}

func TestRedactor_Text(t *testing.T) {
	redactor, err := redact.For([]clusters.Cluster{corporate(t)}, redact.Scope{Files: []string{"/opt/tools/kubectl"}})
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
		{"an argument of a plugin", "s3same, then grant/7f3a9c", "[redacted], then [redacted]"},
		{"a short argument, and one that many have", "--pin=4711 get kubernetes", "--pin=4711 get kubernetes"},
		{"a region is no password", "euphoria in eu", "euphoria in eu"},
		{"a web token", "got " + webToken + ".", "got [redacted]."},
		{"a header", "Authorization: Bearer abcdefghijklmnopqrstuvwxyz", "Authorization: [redacted]"},
		{"a short token in a header", `"Authorization":["Bearer hunter"]`, `"Authorization":["[redacted]"]`},
		{"a short token with a digit", "Bearer abc123", "[redacted]"},
		{"a token of GKE", "no: ya29.a0AfH6SMBx-y_z", "no: [redacted]"},
		{"a token of EKS", "no: k8s-aws-v1.aHR0cHM6Ly9zdHM", "no: [redacted]"},
		{"a bootstrap token", "no: 07401b.f395accd246ae52d!", "no: [redacted]!"},
		{"an encrypted web token", webToken + ".more.parts", "[redacted]"},
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

func TestRedactor_Names(t *testing.T) {
	other := corporate(t)
	other.Name = "payments" // the name of a cluster in the first kubeconfig
	redactor, err := redact.For([]clusters.Cluster{corporate(t), other}, redact.Scope{Names: true, Namespace: "team-a"})
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
		{"v1.36.3, 1.2.3, 1.3.6.1.4.1.57264", "v1.36.3, 1.2.3, 1.3.6.1.4.1.57264"},
		{"PROD_eu, ALICE@acme; alice%40acme, %2Fprod%2F, \\nprod", "cluster-1_eu, user-1; user-1, %2Fcluster-1%2F, \\ncluster-1"},
		{"prod/prod prod2", "cluster-1/cluster-1 prod2"},
		{`Impersonate-Group: acme:staff, uid-of-alice, cc-4400, system:masters`, "Impersonate-Group: group-1, user-1, extra-1, system:masters"},
		{`pods in "billing", secrets in team-a`, `pods in "namespace-1", secrets in namespace-1`},
		{"podIP fd00:10:244::5, ip:2001:db8::7.", "podIP address, ip:address."},
		{"at 10:20:30 a::b? no: ::1, :: and aa:bb:cc:dd:ee:ff", "at 10:20:30 address? no: ::1, :: and aa:bb:cc:dd:ee:ff"},
		{"node_10.1.2.3 on ip-10-1-2-3.ec2.internal", "node_address on address"},
		{"10-1-2-3.payroll.pod.cluster.local, fd00-10--5.payroll.pod.cluster.local", "address, address"},
		{"2026-03-06-07 1-2-3", "2026-03-06-07 1-2-3"},
		{`Post "https://hook.payroll.svc:443/validate?timeout=10s": EOF`, `Post "https://server:443/validate?timeout=10s": EOF`},
		{"connect to registry.acme.example:5000 and hook.payroll.svc", "connect to server:5000 and server"},
		{"certificate is valid for a.example, b.example, not c.example", "certificate is valid for server, not server"},
		{"see https://kubernetes.io/docs, suites/graceful/grace.go:17", "see https://kubernetes.io/docs, suites/graceful/grace.go:17"},
		{"storageversions.internal.apiserver.k8s.io", "storageversions.internal.apiserver.k8s.io"},
		{`User 'bob' cannot, user \"bob\" cannot, User bob cannot list`, `User 'user' cannot, user \"user\" cannot, User user cannot list`},
		{`{"username":"bob","user": "bob"} username=bob, user: bob`, `{"username":"user","user": "user"} username=user, user: user`},
		{"system:serviceaccount:payroll:bot, system:node:worker-7", "system:serviceaccount:user, system:node:user"},
		{"system:serviceaccount:kube-system:generic-garbage-collector", "system:serviceaccount:kube-system:generic-garbage-collector"},
	} {
		t.Run(test.text, func(t *testing.T) {
			NewWithT(t).Expect(redactor.Text(test.text)).To(Equal(test.want))
		})
	}
	NewWithT(t).Expect(redactor.Cluster("prod")).To(Equal("cluster-1"))
	NewWithT(t).Expect(redactor.Cluster("prod widgets.example.com")).To(Equal("cluster-1 widgets.example.com"), "a resource on it")
	NewWithT(t).Expect(redactor.Cluster("payments")).To(Equal("cluster-2"))
}

func TestRedactor_Report(t *testing.T) {
	g := NewWithT(t)
	redactor, err := redact.For([]clusters.Cluster{corporate(t)}, redact.Scope{Names: true})
	g.Expect(err).NotTo(HaveOccurred())
	text := "prod said " + token
	original := v1alpha1.Report{
		APIVersion: "prod", Kind: "prod", RunID: text, Runner: text, Shard: text, Verdicts: []v1alpha1.Verdict{{Reason: text}},
		Clusters: []v1alpha1.Cluster{{
			Name: "prod", Problem: text, Features: []v1alpha1.FeatureStatus{{Feature: v1alpha1.GC, Reason: text}, {Feature: "prod"}},
			Results: []v1alpha1.Result{{
				Behavior: v1alpha1.Behavior{ID: "prod", Statement: "prod"}, Outcome: v1alpha1.Passed, Reason: text,
				Failure: &v1alpha1.Failure{Message: text, Explanation: []string{text}},
				Timeline: v1alpha1.Timeline{
					Requests: []v1alpha1.Request{{Path: text, Body: text, Warnings: []string{text}, Object: &v1alpha1.ObjectReference{UID: types.UID(text)}}},
					Reviews: []v1alpha1.Review{
						{Message: text, User: "bob"}, {User: "alice@acme"}, {User: "system:serviceaccount:payroll:bot"},
						{User: "system:serviceaccount:kube-system:namespace-controller"}, {},
					},
				},
			}},
		}},
	}

	redacted, err := redactor.Report(original)

	g.Expect(err).NotTo(HaveOccurred())
	const clean = "cluster-1 said [redacted]"
	g.Expect([]string{redacted.APIVersion, redacted.Kind}).To(HaveEach("prod"), "the format stays")
	cluster := redacted.Clusters[0]
	g.Expect(cluster.Name).To(Equal("cluster-1"))
	g.Expect(cluster.Features).To(HaveExactElements(v1alpha1.FeatureStatus{Feature: v1alpha1.GC, Reason: clean}, v1alpha1.FeatureStatus{Feature: "cluster-1"}))
	result := cluster.Results[0]
	g.Expect(result.Behavior).To(Equal(original.Clusters[0].Results[0].Behavior), "the catalog's words stay")
	g.Expect(result.Outcome).To(Equal(v1alpha1.Passed))
	request := result.Timeline.Requests[0]
	g.Expect([]string{redacted.RunID, redacted.Runner, redacted.Shard, redacted.Verdicts[0].Reason,
		cluster.Problem, result.Reason, result.Failure.Message, result.Failure.Explanation[0],
		request.Path, request.Body, request.Warnings[0], string(request.Object.UID), result.Timeline.Reviews[0].Message,
	}).To(HaveEach(clean))
	var users []string
	for _, review := range result.Timeline.Reviews {
		users = append(users, review.User)
	}
	g.Expect(users).To(Equal([]string{"user", "user-1", "system:serviceaccount:user", "system:serviceaccount:kube-system:namespace-controller", ""}))
	g.Expect(original.Clusters[0].Results[0].Failure.Explanation[0]).To(Equal(text))
}

func TestCopy_MapsAndInterfaces(t *testing.T) {
	g := NewWithT(t)
	redactor, err := redact.For([]clusters.Cluster{corporate(t)}, redact.Scope{})
	g.Expect(err).NotTo(HaveOccurred())
	redacted, err := redact.Copy(redactor, map[string]any{token: []any{token, map[string]any{"a": token}, 7.0, nil}})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(redacted).To(Equal(map[string]any{"[redacted]": []any{"[redacted]", map[string]any{"a": "[redacted]"}, 7.0, nil}}))
}

func TestRedactor_Error(t *testing.T) {
	g := NewWithT(t)
	cause := errors.New("cause")
	redacted := (&redact.Redactor{}).Error(errors.Join(cause, errors.New("https://a:b@c/")))
	g.Expect(redacted).To(MatchError(cause))
	g.Expect(redacted.Error()).To(Equal("cause\nhttps://[redacted]@c/"))
	g.Expect((&redact.Redactor{}).Error(nil)).To(Succeed())
}
