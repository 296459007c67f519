package users

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/format"

	"github.com/deletion-conformance/deletion-conformance/fixtures"
	"github.com/deletion-conformance/deletion-conformance/framework"
	"github.com/deletion-conformance/deletion-conformance/internal/engine/session"
	"github.com/deletion-conformance/deletion-conformance/internal/kube/apiservertest"
)

// issuer is an API server that issues the tokens hunter-1, hunter-2, ... and records its reviews. It accepts tokens that it has reviewed
// before.
type issuer struct {
	issued   int
	reviewed []string
}

func (i *issuer) ServeHTTP(writer http.ResponseWriter, request *http.Request) {
	status, kind := map[string]any{}, "TokenRequest"
	if strings.HasSuffix(request.URL.Path, "/serviceaccounts/account/token") {
		i.issued++
		status["token"] = fmt.Sprintf("hunter-%d", i.issued)
	} else {
		kind = "TokenReview"
		review := struct{ Spec struct{ Token string } }{}
		_ = json.NewDecoder(request.Body).Decode(&review)
		status["authenticated"] = strings.Contains(strings.Join(i.reviewed, ","), review.Spec.Token)
		i.reviewed = append(i.reviewed, review.Spec.Token)
	}
	writer.WriteHeader(http.StatusCreated)
	_ = json.NewEncoder(writer).Encode(map[string]any{"apiVersion": "authentication.k8s.io/v1", "kind": kind, "status": status})
}

// tokensFrom returns tokens of an issuer, and its cluster.
func tokensFrom(t *testing.T, issuer *issuer) (*Tokens, *framework.Cluster) {
	t.Helper()
	config, _ := apiservertest.Start(t, issuer.ServeHTTP)
	connected, err := session.Connect(config, session.Config{Run: "dcb2c4d5f6", Worker: 2, Namespace: "dcb2c4d5f6-2"})
	if err != nil {
		t.Fatal(err)
	}
	cluster := framework.NewCluster(connected, "abc")
	account := fixtures.ServiceAccount()
	account.SetName("account")
	account.SetNamespace("dcb2c4d5f6-2")
	return RequestTokens(t.Context(), cluster, account, account), cluster
}

func TestTokens_OnePerReview(t *testing.T) {
	g, issuer := NewWithT(t), &issuer{}
	tokens, _ := tokensFrom(t, issuer)
	g.Expect(issuer.issued).To(Equal(tokenStock))
	for range tokenStock {
		g.Expect(tokens.Authenticated(t.Context())).To(BeFalse())
	}
	g.Expect(tokens.Authenticated(t.Context())).To(BeTrue(), "the first is reviewed again")
	g.Expect(issuer.reviewed).To(Equal([]string{"hunter-1", "hunter-2", "hunter-3", "hunter-4", "hunter-5", "hunter-1"}))
}

func TestTokens_NotPrinted(t *testing.T) {
	g, issuer := NewWithT(t), &issuer{}
	tokens, cluster := tokensFrom(t, issuer)
	tokens.Authenticated(t.Context())

	recorded := cluster.Session().Recorder.Take()
	g.Expect(recorded).To(HaveLen(tokenStock + 1))
	g.Expect(fmt.Sprintf("%+v", recorded)).NotTo(ContainSubstring("hunter"))
	g.Expect(fmt.Sprintf("%v %+v %#v", tokens, tokens, tokens)).NotTo(ContainSubstring("hunter"))
	g.Expect(format.Object(tokens, 0)).NotTo(ContainSubstring("hunter"))
}

func TestName(t *testing.T) {
	g := NewWithT(t)
	g.Expect(Name(May("configmaps", "get", "update"), May("configmaps/finalizers", "update"))).To(
		Equal("deletion-conformance:get-update-configmaps+update-configmaps/finalizers"))
}
