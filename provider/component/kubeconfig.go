package component

import (
	"encoding/json"

	"k8s.io/apimachinery/pkg/runtime"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// extension is the name of the socket's path among the extensions of a kubeconfig's cluster.
const extension = "components.deletion-conformance"

// address is the content of the extension. The server is recorded, too, because a flag may replace that of the kubeconfig.
type address struct {
	Server string `json:"server"`
	Socket string `json:"socket"`
}

// WriteSocket records the path of the socket in a kubeconfig's cluster, so that a run with that kubeconfig can stop components, too.
func WriteSocket(cluster *clientcmdapi.Cluster, socket string) error {
	content, err := json.Marshal(address{cluster.Server, socket})
	cluster.Extensions = map[string]runtime.Object{extension: &runtime.Unknown{Raw: content, ContentType: runtime.ContentTypeJSON}}
	return err
}

// ReadSocket returns the path of the socket that a kubeconfig's cluster records for a server; empty when it records none.
func ReadSocket(cluster *clientcmdapi.Cluster, server string) string {
	recorded := address{}
	if known, ok := cluster.Extensions[extension].(*runtime.Unknown); ok && json.Unmarshal(known.Raw, &recorded) != nil || recorded.Server != server {
		return ""
	}
	return recorded.Socket
}
