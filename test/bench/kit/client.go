// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package kit

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"strings"
	"time"

	"k8s.io/client-go/rest"
)

// The API group of clusters, and the label of the set of a cluster.
const (
	ClusterGroup = "cluster.open-cluster-management.io"
	SetLabel     = ClusterGroup + "/clusterset"
)

// Paths of ours, and of the peer's clusters.
const (
	ClustersPath     = "/apis/" + ClusterGroup + "/v1/managedclusters"
	SetsPath         = "/apis/" + ClusterGroup + "/v1beta2/managedclustersets"
	MembersPath      = "/apis/view.clusterhub.dev/v1alpha1/clustersetmembers"
	VisiblePath      = "/apis/clusterview.open-cluster-management.io/v1/managedclusters"
	PeerClustersPath = "/apis/bench.clusterhub.dev/v1/managedclusters"
)

// MergePatch is the content type of merge patches.
const MergePatch = "application/merge-patch+json"

// EventTimeout is the time after which an event counts as lost.
const EventTimeout = 10 * time.Second

// Client sends raw requests and reads responses completely. It decodes nothing while it measures.
type Client struct {
	http *http.Client
	host string
	// Header returns additional headers for the path of a request. It may be nil.
	Header func(path string) http.Header
}

// NewClient returns a client with a connection pool of its own. client-go would share one among equal configurations.
func NewClient(config *rest.Config) (*Client, error) {
	config = rest.CopyConfig(config)
	dialer := &net.Dialer{Timeout: 30 * time.Second, KeepAlive: 30 * time.Second}
	config.Dial = dialer.DialContext
	c, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, err
	}
	return &Client{http: c, host: strings.TrimSuffix(config.Host, "/")}, nil
}

// NewClients returns n clients.
func NewClients(config *rest.Config, n int) ([]*Client, error) {
	clients := make([]*Client, n)
	for i := range clients {
		var err error
		clients[i], err = NewClient(config)
		if err != nil {
			return nil, err
		}
	}
	return clients, nil
}

// Open sends a request and returns the response with an unread body.
func (c *Client) Open(ctx context.Context, method, path, contentType string, body []byte) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, method, c.host+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Accept", "application/json")
	if contentType != "" {
		request.Header.Set("Content-Type", contentType)
	}
	if c.Header != nil {
		maps.Copy(request.Header, c.Header(path))
	}
	response, err := c.http.Do(request)
	if err != nil {
		return nil, err
	}
	if response.StatusCode >= 300 {
		defer response.Body.Close()
		message, _ := io.ReadAll(io.LimitReader(response.Body, 2000))
		return nil, fmt.Errorf("%s %s: %s: %s", method, path, response.Status, bytes.TrimSpace(message))
	}
	return response, nil
}

// Do sends a request and reads the whole response into buffer, which is reset first.
func (c *Client) Do(ctx context.Context, method, path, contentType string, body []byte, buffer *bytes.Buffer) error {
	response, err := c.Open(ctx, method, path, contentType, body)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	buffer.Reset()
	_, err = buffer.ReadFrom(response.Body)
	return err
}

// Get reads a path into buffer.
func (c *Client) Get(ctx context.Context, path string, buffer *bytes.Buffer) error {
	return c.Do(ctx, http.MethodGet, path, "", nil, buffer)
}

// List has the fields that are decoded of a list, outside of any measurement.
type List struct {
	Metadata struct {
		ResourceVersion string `json:"resourceVersion"`
	} `json:"metadata"`
	Items []struct {
		Metadata struct {
			Name string `json:"name"`
		} `json:"metadata"`
	} `json:"items"`
}

// List reads and decodes a list.
func (c *Client) List(ctx context.Context, path string) (*List, error) {
	var buffer bytes.Buffer
	if err := c.Get(ctx, path, &buffer); err != nil {
		return nil, err
	}
	l := &List{}
	return l, json.Unmarshal(buffer.Bytes(), l)
}
