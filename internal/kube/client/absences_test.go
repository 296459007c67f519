package client

import (
	"fmt"
	"net/http"
	"testing"

	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/deletion-conformance/deletion-conformance/fixtures"
)

func TestAbsences_Limit(t *testing.T) {
	g := NewWithT(t)
	known := &absences{paths: map[string]bool{}}
	get := func(number int) Request {
		object := in("dcb2c4d5f6-1", fixtures.ConfigMap(fmt.Sprint("c", number)))
		return Request{Method: http.MethodGet, Path: configMaps.path() + "/" + object.GetName(), Object: configMaps.referenceTo(object)}
	}
	for number := range 3 * maxAbsences {
		known.note(Response{sent: get(number), Err: apierrors.NewNotFound(configMaps.Resource.GroupResource(), "c")})
	}
	g.Expect(len(known.paths)).To(BeNumerically("<=", maxAbsences))
	g.Expect(known.has(get(3*maxAbsences-1))).To(BeTrue(), "it was just noted")
}
