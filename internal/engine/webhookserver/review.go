package webhookserver

import (
	"encoding/json"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Review is the request that the API server sends to a webhook for review.
type Review = admissionv1.AdmissionRequest

// MetadataOf returns the metadata of a review's object: as stored or, for a create, as sent.
func MetadataOf(review Review) metav1.PartialObjectMetadata {
	object := metav1.PartialObjectMetadata{}
	for _, raw := range [][]byte{review.Object.Raw, review.OldObject.Raw} {
		_ = json.Unmarshal(raw, &object) // a review without an object has no metadata
	}
	return object
}

// NameOf returns the name of a review's object. For a deletecollection only the object contains it. The namespace counts, because another
// user may copy the labels of the run to a namespace and to objects. Namespaces are reviewed as if they were in themselves.
func NameOf(review Review) types.NamespacedName {
	named := types.NamespacedName{Namespace: review.Namespace, Name: review.Name}
	if named.Name == "" {
		named.Name = MetadataOf(review).Name
	}
	if review.Resource.Group == "" && review.Resource.Resource == "namespaces" {
		named.Namespace = ""
	}
	return named
}
