// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package servingcert

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	aggregatorinformers "k8s.io/kube-aggregator/pkg/client/informers/externalversions"
	aggregatorlisters "k8s.io/kube-aggregator/pkg/client/listers/apiregistration/v1"
)

// resyncInterval is the interval after which every APIService of ours is checked without an event.
const resyncInterval = 10 * time.Minute

// caBundles reconciles spec.caBundle in the APIServices that name our service, and changes nothing else.
type caBundles struct {
	manager *Manager
	lister  aggregatorlisters.APIServiceLister
	queue   workqueue.TypedRateLimitingInterface[string]
}

func (m *Manager) runCABundle(ctx context.Context) {
	factory := aggregatorinformers.NewSharedInformerFactory(m.config.Aggregator, resyncInterval)
	apiServices := factory.Apiregistration().V1().APIServices()
	c := &caBundles{
		manager: m,
		lister:  apiServices.Lister(),
		queue: workqueue.NewTypedRateLimitingQueue(
			workqueue.NewTypedItemExponentialFailureRateLimiter[string](minRetry, maxRetry)),
	}
	_, err := apiServices.Informer().AddEventHandler(cache.FilteringResourceEventHandler{
		FilterFunc: func(obj any) bool {
			apiService, ok := obj.(*apiregistrationv1.APIService)
			if ok && m.isShadowed(apiService) {
				klog.FromContext(ctx).Info("The hub serves a version of our API group from CustomResourceDefinitions: what is "+
					"stored in those and what is stored here are two worlds", "apiService", apiService.Name)
			}
			return ok && m.isOurs(apiService)
		},
		Handler: cache.ResourceEventHandlerFuncs{
			AddFunc:    func(obj any) { c.queue.Add(obj.(*apiregistrationv1.APIService).Name) },
			UpdateFunc: func(_, obj any) { c.queue.Add(obj.(*apiregistrationv1.APIService).Name) },
		},
	})
	if err != nil { // only for an informer that was stopped, and this one has not been started
		klog.FromContext(ctx).Error(err, "The caBundles of our APIServices are not updated")
		return
	}
	factory.Start(ctx.Done())
	defer factory.Shutdown()

	var wg sync.WaitGroup
	wg.Go(func() { c.work(ctx) })
	wg.Go(func() { c.enqueueOnChange(ctx) })
	<-ctx.Done()
	c.queue.ShutDown()
	wg.Wait()
}

// enqueueOnChange enqueues our APIServices whenever the bundle has changed.
func (c *caBundles) enqueueOnChange(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-c.manager.bundleChanged:
		}
		all, err := c.lister.List(labels.Everything())
		if err != nil {
			klog.FromContext(ctx).Error(err, "Cannot list APIServices")
		}
		for _, apiService := range all {
			if c.manager.isOurs(apiService) {
				c.queue.Add(apiService.Name)
			}
		}
	}
}

func (c *caBundles) work(ctx context.Context) {
	for {
		name, shutdown := c.queue.Get()
		if shutdown {
			return
		}
		if err := c.reconcile(ctx, name); apierrors.IsConflict(err) {
			// A concurrent write, such as the front's for a new APIService, is not an error.
			c.queue.AddRateLimited(name)
		} else if err != nil && ctx.Err() == nil {
			klog.FromContext(ctx).Error(err, "Could not set the caBundle of an APIService, retrying", "apiService", name)
			c.queue.AddRateLimited(name)
		} else {
			c.queue.Forget(name)
		}
		c.queue.Done(name)
	}
}

// reconcile sets the caBundle of one APIService if it is ours and differs.
func (c *caBundles) reconcile(ctx context.Context, name string) error {
	apiService, err := c.lister.Get(name)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	if !c.manager.isOurs(apiService) || bytes.Equal(apiService.Spec.CABundle, c.manager.CABundle()) {
		return nil
	}
	// Another replica may have just rotated the CA and written this bundle, so that ours may be stale. Only if the Secret exists and is invalid, the
	// current bundle is used.
	if fresh, err := c.manager.sync(ctx); !fresh && !errors.Is(err, ErrInvalidSecret) {
		return err
	}
	bundle := c.manager.CABundle()
	if bytes.Equal(apiService.Spec.CABundle, bundle) {
		return nil
	}
	if apiService.Spec.InsecureSkipTLSVerify {
		// The kube-apiserver rejects a caBundle beside it. It was set on purpose, so it is not removed here.
		klog.FromContext(ctx).Info("An APIService of ours has insecureSkipTLSVerify, so it gets no caBundle: "+
			"remove spec.insecureSkipTLSVerify from it", "apiService", name)
		return nil
	}
	patch, err := json.Marshal(map[string]any{
		// With the version that was read, an APIService that now names another service is not changed.
		"metadata": map[string]any{"resourceVersion": apiService.ResourceVersion},
		"spec":     map[string]any{"caBundle": bundle},
	})
	if err != nil {
		return err
	}
	_, err = c.manager.config.Aggregator.ApiregistrationV1().APIServices().
		Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: managedBy})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// isShadowed reports whether the hub serves a version of a group of ours itself.
func (m *Manager) isShadowed(apiService *apiregistrationv1.APIService) bool {
	return apiService.Spec.Service == nil && slices.Contains(m.config.Groups, apiService.Spec.Group)
}

func (m *Manager) isOurs(apiService *apiregistrationv1.APIService) bool {
	service := apiService.Spec.Service
	return service != nil && service.Namespace == m.config.Namespace && service.Name == m.config.Service
}
