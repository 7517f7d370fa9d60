// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"context"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// answerTimeout is the response timeout of a kube-apiserver.
const answerTimeout = 10 * time.Second

// admin checks the health of a cluster.
type admin struct{ kubernetes.Interface }

func (c cluster) admin(r record) (admin, error) {
	config, err := c.adminConfig(r)
	if err != nil {
		return admin{}, err
	}
	config.Timeout = answerTimeout
	client, err := kubernetes.NewForConfig(config)
	return admin{client}, err
}

func (a admin) get(ctx context.Context, path string) ([]byte, error) {
	return a.Discovery().RESTClient().Get().AbsPath(path).DoRaw(ctx)
}

func (a admin) ready(ctx context.Context) error {
	_, err := a.get(ctx, "/readyz")
	return err
}

// alive excludes etcd, which is checked separately.
func (a admin) alive(ctx context.Context) error {
	return a.Discovery().RESTClient().Get().AbsPath("/livez").Param("exclude", "etcd").Do(ctx).Error()
}

func (a admin) version() (string, error) {
	info, err := a.Discovery().ServerVersion()
	if err != nil {
		return "", err
	}
	return strings.TrimPrefix(info.GitVersion, "v"), nil
}

// aggregates reports whether the usual aggregated ClusterRoles can be used.
func (a admin) aggregates(ctx context.Context) bool {
	view, err := a.RbacV1().ClusterRoles().Get(ctx, "view", metav1.GetOptions{})
	return err == nil && len(view.Rules) > 0
}
