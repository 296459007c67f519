package environments

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"net/http/httptest"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/deletion-conformance/deletion-conformance/fixtures"
)

// injectSidecars is a part that adds a container to each pod, as service meshes do, unless the pod opts out.
func injectSidecars(optsOut func(*corev1.Pod) bool) part {
	return func(ctx context.Context, site *site) error {
		server := httptest.NewTLSServer(&admission.Webhook{Handler: injector(optsOut)})
		site.onStop(func() error {
			server.Close()
			return nil
		})
		authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
		return site.apply(ctx, "sidecars", map[string]string{
			"URL": server.URL, "CABundle": base64.StdEncoding.EncodeToString(authority),
		})
	}
}

// injector adds the container.
func injector(optsOut func(*corev1.Pod) bool) admission.HandlerFunc {
	return func(_ context.Context, request admission.Request) admission.Response {
		pod := &corev1.Pod{}
		if err := json.Unmarshal(request.Object.Raw, pod); err != nil {
			return admission.Errored(400, err)
		}
		if optsOut(pod) {
			return admission.Allowed("")
		}
		pod.Spec.Containers = append(pod.Spec.Containers, corev1.Container{
			Name: "mesh-proxy", Image: fixtures.PauseImage,
		})
		changed, err := json.Marshal(pod)
		if err != nil {
			return admission.Errored(500, err)
		}
		return admission.PatchResponseFromRaw(request.Object.Raw, changed)
	}
}

// asIstio reports whether a pod opts out as Istio documents: with a label, or the older annotation.
func asIstio(pod *corev1.Pod) bool {
	const key = "sidecar.istio.io/inject"
	return pod.Labels[key] == "false" || pod.Annotations[key] == "false"
}

// noOptOut does not allow pods to opt out.
func noOptOut(*corev1.Pod) bool { return false }
