package framework

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

func TestDeleteOptions_MediaTypes(t *testing.T) {
	g := NewWithT(t)
	for _, mediaType := range []string{runtime.ContentTypeJSON, runtime.ContentTypeYAML, runtime.ContentTypeProtobuf, runtime.ContentTypeCBOR} {
		request := deletion([]DeleteOption{Encoded(mediaType), Foreground, Grace(7)})

		body := request.body().([]byte)

		info, _ := runtime.SerializerInfoForMediaType(encoders.SupportedMediaTypes(), mediaType)
		read, kind, err := info.Serializer.Decode(body, nil, &metav1.DeleteOptions{})
		g.Expect(err).NotTo(HaveOccurred(), mediaType)
		g.Expect(*kind).To(Equal(corev1.SchemeGroupVersion.WithKind("DeleteOptions")), mediaType)
		g.Expect(read).To(And(
			HaveField("PropagationPolicy", HaveValue(Equal(metav1.DeletePropagationForeground))),
			HaveField("GracePeriodSeconds", HaveValue(BeEquivalentTo(7)))), mediaType)
	}
}
