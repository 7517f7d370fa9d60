// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Command watch-members prints which clusters join and leave a set, for as long as it runs.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"

	viewv1alpha1 "github.com/clusterhub/clusterhub/pkg/apis/view/v1alpha1"
	"github.com/clusterhub/clusterhub/pkg/command"
	"github.com/clusterhub/clusterhub/pkg/generated/clientset/versioned"
	informers "github.com/clusterhub/clusterhub/pkg/generated/informers/externalversions"
)

func main() {
	kubeconfig := flag.String("kubeconfig", os.Getenv("KUBECONFIG"), "the hub's kubeconfig")
	set := flag.String("set", "", "cluster set to watch; if empty, all visible cluster sets")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := watch(ctx, *kubeconfig, *set); err != nil {
		fmt.Fprintln(os.Stderr, "watch-members:", err)
		os.Exit(1)
	}
}

func watch(ctx context.Context, kubeconfig, set string) error {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	client, err := versioned.NewForConfig(config)
	if err != nil {
		return err
	}
	selected := informers.WithTweakListOptions(func(o *metav1.ListOptions) {
		if set != "" {
			o.FieldSelector = "spec.clusterSet=" + set
		}
	})
	factory := informers.NewSharedInformerFactoryWithOptions(client, 0, selected, informers.WithTransform(command.ForCache))
	_, err = factory.View().V1alpha1().ClusterSetMembers().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: func(obj any) { say("joins", obj) },
		DeleteFunc: func(obj any) {
			if gone, ok := obj.(cache.DeletedFinalStateUnknown); ok {
				obj = gone.Obj // it left while the connection was lost
			}
			say("leaves", obj)
		},
	})
	if err != nil {
		return err
	}
	factory.StartWithContext(ctx)
	<-ctx.Done()
	factory.Shutdown()
	return nil
}

func say(what string, obj any) {
	member := obj.(*viewv1alpha1.ClusterSetMember)
	fmt.Printf("%s  %s %s %s\n", time.Now().Format(time.TimeOnly), member.Spec.Cluster, what, member.Spec.ClusterSet)
}
