package clusters

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/deletion-conformance/deletion-conformance/provider/existing"
)

// FromRESTConfig returns the cluster of a program's configuration. Workers are separate processes and get it as a kubeconfig, so it fails
// for functions that dial or wrap requests.
func FromRESTConfig(name string, config *rest.Config) (Cluster, error) {
	kubeconfig, err := kubeconfigOf(name, config)
	if err != nil {
		return Cluster{}, err
	}
	timeout := &clientcmd.ConfigOverrides{Timeout: config.Timeout.String()} // which a kubeconfig cannot contain
	existing, err := existing.New(clientcmd.NewNonInteractiveClientConfig(*kubeconfig, name, timeout, nil))
	if err != nil {
		return Cluster{}, err
	}
	content, err := clientcmd.Write(*kubeconfig)
	return Cluster{Name: name, Provider: existing, Kubeconfig: content}, err
}

// kubeconfigOf converts a configuration to a kubeconfig with one context.
func kubeconfigOf(name string, config *rest.Config) (*clientcmdapi.Config, error) {
	server, _, err := rest.DefaultServerUrlFor(config)
	switch {
	case err != nil:
		return nil, fmt.Errorf("read the address of the cluster: %w", err)
	case config.Transport != nil || config.WrapTransport != nil || config.Dial != nil:
		return nil, errors.New("the configuration must not set Transport, WrapTransport or Dial: worker processes cannot use them")
	case config.AuthProvider != nil:
		return nil, fmt.Errorf("authentication provider %q is not supported; use an exec plugin, a token or a certificate", config.AuthProvider.Name)
	}
	proxy, err := proxyOf(config, server)
	if err != nil {
		return nil, err
	}
	kubeconfig := clientcmdapi.NewConfig()
	kubeconfig.Clusters[name] = &clientcmdapi.Cluster{
		Server: server.String(), TLSServerName: config.ServerName, InsecureSkipTLSVerify: config.Insecure,
		CertificateAuthority: config.CAFile, CertificateAuthorityData: config.CAData,
		ProxyURL: proxy, DisableCompression: config.DisableCompression,
	}
	kubeconfig.AuthInfos[name] = userOf(config)
	kubeconfig.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name}
	kubeconfig.CurrentContext = name
	return kubeconfig, nil
}

// userOf returns the user of a configuration.
func userOf(config *rest.Config) *clientcmdapi.AuthInfo {
	return &clientcmdapi.AuthInfo{
		ClientCertificate: config.CertFile, ClientCertificateData: config.CertData,
		ClientKey: config.KeyFile, ClientKeyData: config.KeyData,
		Token: config.BearerToken, TokenFile: config.BearerTokenFile,
		Username: config.Username, Password: config.Password,
		Impersonate: config.Impersonate.UserName, ImpersonateUID: config.Impersonate.UID,
		ImpersonateGroups: config.Impersonate.Groups, ImpersonateUserExtra: config.Impersonate.Extra,
		Exec: config.ExecProvider,
	}
}

// proxyOf returns the proxy for a server; empty for none.
func proxyOf(config *rest.Config, server *url.URL) (string, error) {
	if config.Proxy == nil {
		return "", nil
	}
	proxy, err := config.Proxy(&http.Request{URL: server})
	if err != nil {
		return "", fmt.Errorf("find the proxy on the way to %s: %w", server.Host, err)
	}
	if proxy == nil {
		return "", nil
	}
	return proxy.String(), nil
}
