// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package access

import (
	"context"
	"errors"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/clusterhub/clusterhub/pkg/apis/openmcp/v1alpha1"
	"github.com/clusterhub/clusterhub/pkg/clusterprovider"
)

func request(name string, uid types.UID) *v1alpha1.AccessRequest {
	return &v1alpha1.AccessRequest{ObjectMeta: metav1.ObjectMeta{Namespace: "teams", Name: name, UID: uid}}
}

// connects is a Provider whose clusters are unreachable.
type connects struct {
	clusterprovider.Provider
	times int
}

func (c *connects) Connect(context.Context, *v1alpha1.Cluster) (*rest.Config, error) {
	c.times++
	return nil, errors.New("out of reach")
}
