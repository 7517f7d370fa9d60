// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package main

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

const (
	clusterGroup = "cluster.open-cluster-management.io"
	setLabel     = clusterGroup + "/clusterset"

	ourClusters  = "/apis/" + clusterGroup + "/v1/managedclusters"
	ourSets      = "/apis/" + clusterGroup + "/v1beta2/managedclustersets"
	ourMembers   = "/apis/view.clusterhub.dev/v1alpha1/clustersetmembers"
	ourVisible   = "/apis/clusterview.open-cluster-management.io/v1/managedclusters"
	peerClusters = "/apis/bench.clusterhub.dev/v1/managedclusters"
)

// mergePatch is the content type of merge patches.
const mergePatch = "application/merge-patch+json"

// eventTimeout is the time after which an event counts as lost.
const eventTimeout = 10 * time.Second

// client sends raw requests and reads responses completely. It decodes nothing while it measures.
type client struct {
	http *http.Client
	host string
	// header returns additional headers for the path of a request. It may be nil.
	header func(path string) http.Header
}

// newClient returns a client with a connection pool of its own. client-go would share one among equal configurations.
func newClient(config *rest.Config) (*client, error) {
	config = rest.CopyConfig(config)
	dialer := &net.Dialer{Timeout: 30 * time.Second, KeepAlive: 30 * time.Second}
	config.Dial = dialer.DialContext
	c, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, err
	}
	return &client{http: c, host: strings.TrimSuffix(config.Host, "/")}, nil
}

func newClients(config *rest.Config, n int) ([]*client, error) {
	clients := make([]*client, n)
	for i := range clients {
		var err error
		clients[i], err = newClient(config)
		if err != nil {
			return nil, err
		}
	}
	return clients, nil
}

// open sends a request and returns the response with an unread body.
func (c *client) open(ctx context.Context, method, path, contentType string, body []byte) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, method, c.host+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Accept", "application/json")
	if contentType != "" {
		request.Header.Set("Content-Type", contentType)
	}
	if c.header != nil {
		maps.Copy(request.Header, c.header(path))
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

// do sends a request and reads the whole response into buffer, which is reset first.
func (c *client) do(ctx context.Context, method, path, contentType string, body []byte, buffer *bytes.Buffer) error {
	response, err := c.open(ctx, method, path, contentType, body)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	buffer.Reset()
	_, err = buffer.ReadFrom(response.Body)
	return err
}

func (c *client) get(ctx context.Context, path string, buffer *bytes.Buffer) error {
	return c.do(ctx, http.MethodGet, path, "", nil, buffer)
}

// list has the fields that are decoded of a list, outside of any measurement.
type list struct {
	Metadata struct {
		ResourceVersion string `json:"resourceVersion"`
	} `json:"metadata"`
	Items []struct {
		Metadata struct {
			Name string `json:"name"`
		} `json:"metadata"`
	} `json:"items"`
}

func (c *client) list(ctx context.Context, path string) (*list, error) {
	var buffer bytes.Buffer
	if err := c.get(ctx, path, &buffer); err != nil {
		return nil, err
	}
	l := &list{}
	return l, json.Unmarshal(buffer.Bytes(), l)
}
