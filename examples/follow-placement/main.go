// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Command follow-placement prints which clusters a placement chooses, for as long as it runs. It reads PlacementDecisions as the tools of the
// field do, such as the generator clusterDecisionResource of Argo CD's ApplicationSets: by their label, without Go types, and with every
// value of a decision taken for a text.
package main

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/signal"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
)

// What a ConfigMap for Argo CD's generator has, too.
var (
	decisions = schema.GroupVersionResource{Group: "cluster.open-cluster-management.io", Version: "v1beta1", Resource: "placementdecisions"}
	selector  = "cluster.open-cluster-management.io/placement"
)

const (
	statusListKey = "decisions"
	matchKey      = "clusterName"
)

func main() {
	kubeconfig := flag.String("kubeconfig", os.Getenv("KUBECONFIG"), "the hub's kubeconfig")
	namespace := flag.String("namespace", "default", "namespace of the placement")
	placement := flag.String("placement", "", "name of the placement")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, *kubeconfig, *namespace, *placement); err != nil {
		fmt.Fprintln(os.Stderr, "follow-placement:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, kubeconfig, namespace, placement string) error {
	if placement == "" {
		return fmt.Errorf("--placement is required: specify a placement in the namespace %s", namespace)
	}
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return err
	}
	return follow(ctx, client, namespace, placement, func(cluster string, chosen bool) {
		what := "left"
		if chosen {
			what = "chosen"
		}
		fmt.Printf("%s  %s %s\n", time.Now().Format(time.TimeOnly), cluster, what)
	})
}

// follow reports each cluster that enters or leaves the decisions of a placement, until the context ends or a decision cannot be read.
func follow(ctx context.Context, client dynamic.Interface, namespace, placement string, tell func(cluster string, chosen bool)) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	factory := dynamicinformer.NewFilteredDynamicSharedInformerFactory(client, 0, namespace, func(o *metav1.ListOptions) {
		o.LabelSelector = labels.Set{selector: placement}.String()
	})
	informer := factory.ForResource(decisions).Informer()
	known := map[string]map[string]string{}
	// A cluster that moves is written first where it comes to: so all decisions together never miss one that stays.
	look := func() {
		now := map[string]map[string]string{}
		for _, object := range informer.GetStore().List() {
			clusters, err := parameters(object.(*unstructured.Unstructured))
			if err != nil {
				cancel(err)
				return
			}
			for _, cluster := range clusters {
				now[cluster[matchKey]] = cluster
			}
		}
		for _, name := range slices.Sorted(maps.Keys(now)) {
			if known[name] == nil {
				tell(name, true)
			}
		}
		for _, name := range slices.Sorted(maps.Keys(known)) {
			if now[name] == nil {
				tell(name, false)
			}
		}
		known = now
	}
	if _, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: func(any) { look() }, UpdateFunc: func(any, any) { look() }, DeleteFunc: func(any) { look() },
	}); err != nil {
		return err
	}
	factory.Start(ctx.Done())
	<-ctx.Done()
	factory.Shutdown()
	if cause := context.Cause(ctx); cause != context.Canceled {
		return cause
	}
	return nil
}

// parameters returns the parameters for the applications of an ApplicationSet: each value of each decision, as a string.
func parameters(object *unstructured.Unstructured) (clusters []map[string]string, err error) {
	status, there := object.Object["status"].(map[string]any)
	if !there {
		return nil, nil
	}
	// Argo CD's generator does not check these types: it would panic.
	list, ok := status[statusListKey].([]any)
	if !ok {
		return nil, fmt.Errorf("%s: expected a list in status.%s, got a %T", object.GetName(), statusListKey, status[statusListKey])
	}
	for _, item := range list {
		decision, ok := item.(map[string]any)
		if !ok {
			return nil, fmt.Errorf("%s: expected an object in status.%s, got a %T", object.GetName(), statusListKey, item)
		}
		cluster := map[string]string{}
		for key, value := range decision {
			cluster[key], ok = value.(string)
			if !ok {
				return nil, fmt.Errorf("%s: expected a string in %s, got a %T: placements for such tools must not set sortBy: Score",
					object.GetName(), key, value)
			}
		}
		clusters = append(clusters, cluster)
	}
	return clusters, nil
}
