package run

import "k8s.io/apimachinery/pkg/runtime/schema"

// Why an object of some of Kubernetes' own resources would be more than an object that lies there.
const (
	ofEverybody   = "one of them is a rule for everybody's requests"
	ofPermissions = "one of them grants permissions"
	ofTheAPI      = "one of them is an API that everybody sees, and with it go all objects of its kinds"
	ofNodes       = "one of them says what the cluster's machines are like"
	ofStorage     = "one of them stands for storage, which may be made or deleted with it"
	ofAddresses   = "one of them takes addresses that others could have"
	ofTheRun      = "one of them is a rule for all that the run makes in a namespace"
	ofNamespaces  = "with one of them goes all that is in it: what they promise is tested of namespaces by their own behaviors"
	ofPods        = "their grace and their nodes make them promise other things: they are tested by behaviors of their own"
	ofServices    = "one of them belongs to a Service: the endpoints controller deletes one without when it starts, and when another of its name was deleted before"
	ofElections   = "one of them takes part in electing who leads"
	ofSignatures  = "one of them asks for a certificate"
	ofMigrations  = "one of them has all objects of a kind written again"
)

// protected are the resources that are tested only where they are named, and why.
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
