package framework

import (
	"fmt"

	"github.com/onsi/ginkgo/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/runtime/serializer/cbor"
	"k8s.io/client-go/kubernetes/scheme"
)

// Media types of responses (protocols.Accepting).
const (
	// TableJSON is a table, as kubectl get prints it.
	TableJSON = "application/json;as=Table;g=meta.k8s.io;v=v1"
	// MetadataJSON is an object without all but its metadata; MetadataListJSON is a list of these.
	MetadataJSON     = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
	MetadataListJSON = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
)

// Versions of HTTP (protocols.Over), by their names in TLS.
const (
	HTTP1 = "http/1.1"
	HTTP2 = "h2"
)

// Encoded sends delete options in a media type of Kubernetes: runtime.ContentTypeJSON, YAML, Protobuf or CBOR.
func Encoded(mediaType string) DeleteOption {
	return func(request *DeleteRequest) { request.ContentType = mediaType }
}

// encoders are the encoders of all media types. A server has CBOR where a feature gate is on.
var encoders = serializer.NewCodecFactory(scheme.Scheme, serializer.WithSerializer(cbor.NewSerializerInfo))

// encoded returns delete options in a media type.
func encoded(options metav1.DeleteOptions, mediaType string) []byte {
	ginkgo.GinkgoHelper()
	info, known := runtime.SerializerInfoForMediaType(encoders.SupportedMediaTypes(), mediaType)
	if !known {
		ginkgo.Fail("there is no encoder for " + mediaType)
	}
	body, err := runtime.Encode(encoders.EncoderForVersion(info.Serializer, corev1.SchemeGroupVersion), &options)
	if err != nil {
		ginkgo.Fail(fmt.Sprintf("encode delete options as %s: %v", mediaType, err))
	}
	return body
}
