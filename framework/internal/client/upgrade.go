package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"

	"k8s.io/client-go/rest"
)

// Upgrade asks the server to switch a connection to another protocol, by a GET of a path. It returns the connection, which outlives the
// context, and the headers of the response.
func (c *Client) Upgrade(ctx context.Context, path, protocol string, header http.Header) (io.ReadWriteCloser, http.Header, error) {
	config := rest.CopyConfig(c.config)
	config.NextProtos = []string{"http/1.1"} // HTTP/2 has no upgrades
	transport, err := limitedTransport(config, c.guard, responseLimit)
	if err != nil {
		return nil, nil, err
	}
	base, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return nil, nil, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, base.JoinPath(path).String(), http.NoBody)
	if err != nil {
		return nil, nil, err
	}
	request.Header = header.Clone()
	request.Header.Set("Connection", "Upgrade")
	request.Header.Set("Upgrade", protocol)
	response, err := transport.RoundTrip(request)
	if err != nil {
		return nil, nil, err
	}
	if response.StatusCode != http.StatusSwitchingProtocols {
		defer func() { _ = response.Body.Close() }()
		content, _ := io.ReadAll(io.LimitReader(response.Body, messageLimit))
		return nil, nil, fmt.Errorf("the server responded %s: %s", response.Status, content)
	}
	stream, is := response.Body.(io.ReadWriteCloser)
	if !is {
		return nil, nil, errors.Join(errors.New("the connection cannot be written to"), response.Body.Close())
	}
	return stream, response.Header, nil
}

// messageLimit limits the message of a refused upgrade, in bytes.
const messageLimit = 4 << 10
