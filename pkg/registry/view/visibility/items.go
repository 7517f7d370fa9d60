// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package visibility

import (
	"iter"
	"reflect"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/clusterhub/clusterhub/pkg/registry/generic"
)

// The functions below read and write lists of any kind. Those of a derived resource have metadata and items.

func listMeta(list runtime.Object) metav1.ListInterface {
	accessor, err := meta.ListAccessor(list)
	if err != nil {
		panic(err)
	}
	return accessor
}

func versionOf(list runtime.Object) string { return listMeta(list).GetResourceVersion() }

func items(list runtime.Object) reflect.Value {
	pointer, err := meta.GetItemsPtr(list)
	if err != nil {
		panic(err)
	}
	return reflect.ValueOf(pointer).Elem()
}

// each iterates over the objects of a list, which are not copied.
func each(list runtime.Object) iter.Seq[generic.Object] {
	return func(yield func(generic.Object) bool) {
		objects := items(list)
		for i := range objects.Len() {
			if !yield(objects.Index(i).Addr().Interface().(generic.Object)) {
				return
			}
		}
	}
}

// join makes one list of the items of several lists.
func join(pages []runtime.Object, into runtime.Object) {
	if len(pages) == 0 {
		return
	}
	joined := items(pages[0])
	if len(pages) > 1 {
		n := 0
		for _, page := range pages {
			n += items(page).Len()
		}
		joined = reflect.MakeSlice(joined.Type(), 0, n)
		for _, page := range pages {
			joined = reflect.AppendSlice(joined, items(page))
		}
	}
	items(into).Set(joined)
}
