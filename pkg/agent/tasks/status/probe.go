// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"

	"github.com/clusterhub/clusterhub/pkg/agent/spoke"
)

// probeLive returns a function that checks the health of an API server, at the endpoint that every authenticated client may read.
func probeLive(client rest.Interface) func(context.Context) error {
	ask := func(ctx context.Context, path string) error {
		ctx, cancel := context.WithTimeout(ctx, spoke.Timeout)
		defer cancel()
		status := 0
		body, err := client.Get().AbsPath(path).Do(ctx).StatusCode(&status).Raw()
		switch {
		case status == http.StatusOK:
			return nil
		case status == http.StatusNotFound:
			return apierrors.NewNotFound(corev1.Resource("path"), path)
		case status != 0 && len(body) > 0:
			return fmt.Errorf("%s returned %d: %s", path, status, shorten(string(body[:min(len(body), 2*maxMessage)]), maxMessage))
		case err == nil:
			return fmt.Errorf("%s returned %d", path, status)
		}
		return err
	}
	return func(ctx context.Context) error {
		err := ask(ctx, "/livez")
		if apierrors.IsNotFound(err) { // before Kubernetes 1.16
			err = ask(ctx, "/healthz")
		}
		if errors.Is(err, context.DeadlineExceeded) {
			return fmt.Errorf("no response within %s", spoke.Timeout)
		}
		return err
	}
}
