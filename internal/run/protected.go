package run

import "k8s.io/apimachinery/pkg/runtime/schema"

// Why objects of some of Kubernetes' own resources would affect the cluster.
const (
	ofEverybody   = "its objects affect the requests of all users"
	ofPermissions = "its objects grant permissions"
	ofTheAPI      = "its objects are APIs, and deleting one deletes all objects of its kinds"
	ofNodes       = "its objects describe the machines of the cluster"
	ofStorage     = "its objects represent storage, which may be provisioned or deleted with them"
	ofAddresses   = "its objects allocate addresses"
	ofTheRun      = "its objects affect all objects of the run in a namespace"
	ofNamespaces  = "deleting one deletes its content: separate behaviors test namespaces"
	ofPods        = "pods have grace periods and nodes: separate behaviors test them"
	ofServices    = "its objects belong to Services: the endpoints controller deletes objects without a Service"
	ofElections   = "its objects take part in leader election"
	ofSignatures  = "its objects request certificates"
	ofMigrations  = "its objects rewrite all objects of a kind"
)

// protected maps the resources that are tested only by name to the reasons.
var protected = map[schema.GroupResource]string{
	{Resource: "namespaces"}:             ofNamespaces,
	{Resource: "nodes"}:                  ofNodes,
	{Resource: "pods"}:                   ofPods,
	{Resource: "persistentvolumes"}:      ofStorage,
	{Resource: "persistentvolumeclaims"}: ofStorage,
	{Resource: "resourcequotas"}:         ofTheRun,
	{Resource: "limitranges"}:            ofTheRun,
	{Resource: "endpoints"}:              ofServices,

	{Group: "apiextensions.k8s.io", Resource: "customresourcedefinitions"}: ofTheAPI,
	{Group: "apiregistration.k8s.io", Resource: "apiservices"}:             ofTheAPI,

	{Group: "admissionregistration.k8s.io", Resource: "mutatingadmissionpolicies"}:         ofEverybody,
	{Group: "admissionregistration.k8s.io", Resource: "mutatingadmissionpolicybindings"}:   ofEverybody,
	{Group: "admissionregistration.k8s.io", Resource: "mutatingwebhookconfigurations"}:     ofEverybody,
	{Group: "admissionregistration.k8s.io", Resource: "validatingadmissionpolicies"}:       ofEverybody,
	{Group: "admissionregistration.k8s.io", Resource: "validatingadmissionpolicybindings"}: ofEverybody,
	{Group: "admissionregistration.k8s.io", Resource: "validatingwebhookconfigurations"}:   ofEverybody,
	{Group: "flowcontrol.apiserver.k8s.io", Resource: "flowschemas"}:                       ofEverybody,
	{Group: "flowcontrol.apiserver.k8s.io", Resource: "prioritylevelconfigurations"}:       ofEverybody,

	{Group: "rbac.authorization.k8s.io", Resource: "clusterrolebindings"}: ofPermissions,
	{Group: "rbac.authorization.k8s.io", Resource: "clusterroles"}:        ofPermissions,
	{Group: "rbac.authorization.k8s.io", Resource: "rolebindings"}:        ofPermissions,
	{Group: "rbac.authorization.k8s.io", Resource: "roles"}:               ofPermissions,

	{Group: "certificates.k8s.io", Resource: "certificatesigningrequests"}:   ofSignatures,
	{Group: "certificates.k8s.io", Resource: "clustertrustbundles"}:          ofSignatures,
	{Group: "certificates.k8s.io", Resource: "podcertificaterequests"}:       ofSignatures,
	{Group: "coordination.k8s.io", Resource: "leasecandidates"}:              ofElections,
	{Group: "internal.apiserver.k8s.io", Resource: "storageversions"}:        ofMigrations,
	{Group: "networking.k8s.io", Resource: "ipaddresses"}:                    ofAddresses,
	{Group: "networking.k8s.io", Resource: "servicecidrs"}:                   ofAddresses,
	{Group: "resource.k8s.io", Resource: "devicetaintrules"}:                 ofNodes,
	{Group: "resource.k8s.io", Resource: "resourceslices"}:                   ofNodes,
	{Group: "storage.k8s.io", Resource: "csidrivers"}:                        ofStorage,
	{Group: "storage.k8s.io", Resource: "csinodes"}:                          ofNodes,
	{Group: "storage.k8s.io", Resource: "storageclasses"}:                    ofStorage,
	{Group: "storage.k8s.io", Resource: "volumeattachments"}:                 ofStorage,
	{Group: "storagemigration.k8s.io", Resource: "storageversionmigrations"}: ofMigrations,
}
