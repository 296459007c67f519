package run

import "k8s.io/apimachinery/pkg/runtime/schema"

// Why objects of some of Kubernetes' own resources would affect the cluster.
const (
	affectsAllUsers      = "its objects affect the requests of all users"
	grantsPermissions    = "its objects grant permissions"
	definesAPIs          = "its objects are APIs, and deleting one deletes all objects of its kinds"
	describesNodes       = "its objects describe the machines of the cluster"
	representsStorage    = "its objects represent storage, which may be provisioned or deleted with them"
	allocatesAddresses   = "its objects allocate addresses"
	affectsNamespace     = "its objects affect all objects of the run in a namespace"
	containsObjects      = "deleting one deletes its content: separate behaviors test namespaces"
	hasOwnBehaviors      = "pods have grace periods and nodes: separate behaviors test them"
	belongsToServices    = "its objects belong to Services: the endpoints controller deletes objects without a Service"
	electsLeaders        = "its objects take part in leader election"
	requestsCertificates = "its objects request certificates"
	rewritesObjects      = "its objects rewrite all objects of a kind"
)

// protected maps the resources that are tested only by name to the reasons.
var protected = map[schema.GroupResource]string{
	{Resource: "namespaces"}:             containsObjects,
	{Resource: "nodes"}:                  describesNodes,
	{Resource: "pods"}:                   hasOwnBehaviors,
	{Resource: "persistentvolumes"}:      representsStorage,
	{Resource: "persistentvolumeclaims"}: representsStorage,
	{Resource: "resourcequotas"}:         affectsNamespace,
	{Resource: "limitranges"}:            affectsNamespace,
	{Resource: "endpoints"}:              belongsToServices,

	{Group: "apiextensions.k8s.io", Resource: "customresourcedefinitions"}: definesAPIs,
	{Group: "apiregistration.k8s.io", Resource: "apiservices"}:             definesAPIs,

	{Group: "admissionregistration.k8s.io", Resource: "mutatingadmissionpolicies"}:         affectsAllUsers,
	{Group: "admissionregistration.k8s.io", Resource: "mutatingadmissionpolicybindings"}:   affectsAllUsers,
	{Group: "admissionregistration.k8s.io", Resource: "mutatingwebhookconfigurations"}:     affectsAllUsers,
	{Group: "admissionregistration.k8s.io", Resource: "validatingadmissionpolicies"}:       affectsAllUsers,
	{Group: "admissionregistration.k8s.io", Resource: "validatingadmissionpolicybindings"}: affectsAllUsers,
	{Group: "admissionregistration.k8s.io", Resource: "validatingwebhookconfigurations"}:   affectsAllUsers,
	{Group: "flowcontrol.apiserver.k8s.io", Resource: "flowschemas"}:                       affectsAllUsers,
	{Group: "flowcontrol.apiserver.k8s.io", Resource: "prioritylevelconfigurations"}:       affectsAllUsers,

	{Group: "rbac.authorization.k8s.io", Resource: "clusterrolebindings"}: grantsPermissions,
	{Group: "rbac.authorization.k8s.io", Resource: "clusterroles"}:        grantsPermissions,
	{Group: "rbac.authorization.k8s.io", Resource: "rolebindings"}:        grantsPermissions,
	{Group: "rbac.authorization.k8s.io", Resource: "roles"}:               grantsPermissions,

	{Group: "certificates.k8s.io", Resource: "certificatesigningrequests"}:   requestsCertificates,
	{Group: "certificates.k8s.io", Resource: "clustertrustbundles"}:          requestsCertificates,
	{Group: "certificates.k8s.io", Resource: "podcertificaterequests"}:       requestsCertificates,
	{Group: "coordination.k8s.io", Resource: "leasecandidates"}:              electsLeaders,
	{Group: "internal.apiserver.k8s.io", Resource: "storageversions"}:        rewritesObjects,
	{Group: "networking.k8s.io", Resource: "ipaddresses"}:                    allocatesAddresses,
	{Group: "networking.k8s.io", Resource: "servicecidrs"}:                   allocatesAddresses,
	{Group: "resource.k8s.io", Resource: "devicetaintrules"}:                 describesNodes,
	{Group: "resource.k8s.io", Resource: "resourceslices"}:                   describesNodes,
	{Group: "storage.k8s.io", Resource: "csidrivers"}:                        representsStorage,
	{Group: "storage.k8s.io", Resource: "csinodes"}:                          describesNodes,
	{Group: "storage.k8s.io", Resource: "storageclasses"}:                    representsStorage,
	{Group: "storage.k8s.io", Resource: "volumeattachments"}:                 representsStorage,
	{Group: "storagemigration.k8s.io", Resource: "storageversionmigrations"}: rewritesObjects,
}
