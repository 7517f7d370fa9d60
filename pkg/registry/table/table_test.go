// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package table

import (
	"reflect"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/clusterhub/clusterhub/pkg/apis/cluster"
)

var convertor = Convertor[*cluster.ManagedClusterSet]{
	Columns: []metav1.TableColumnDefinition{Name(), Age()},
	Cells:   func(s *cluster.ManagedClusterSet) []any { return []any{s.Name, AgeCell(&s.ObjectMeta)} },
}

func set(name string) *cluster.ManagedClusterSet {
	return &cluster.ManagedClusterSet{ObjectMeta: metav1.ObjectMeta{Name: name, ResourceVersion: "7"}}
}

func convert(t *testing.T, object, options runtime.Object) *metav1.Table {
	t.Helper()
	table, err := convertor.ConvertToTable(t.Context(), object, options)
	if err != nil {
		t.Fatal(err)
	}
	return table
}

func TestConvertToTable_List(t *testing.T) {
	remaining := int64(5)
	list := &cluster.ManagedClusterSetList{
		ListMeta: metav1.ListMeta{ResourceVersion: "9", Continue: "more", RemainingItemCount: &remaining},
		Items:    []cluster.ManagedClusterSet{*set("b"), *set("a")},
	}
	table := convert(t, list, nil)
	if table.ResourceVersion != "9" || table.Continue != "more" || table.RemainingItemCount == nil || *table.RemainingItemCount != 5 {
		t.Errorf("metadata %+v", table.ListMeta)
	}
	if len(table.Rows) != 2 || table.Rows[0].Cells[0] != "b" || table.Rows[1].Cells[0] != "a" {
		t.Fatalf("rows %+v", table.Rows)
	}
	if got := table.Rows[1].Object.Object.(*cluster.ManagedClusterSet); got.Name != "a" {
		t.Errorf("the second row is of %s", got.Name)
	}
}

func TestConvertToTable_Object(t *testing.T) {
	table := convert(t, set("a"), &metav1.TableOptions{})
	if table.ResourceVersion != "7" || len(table.Rows) != 1 || !reflect.DeepEqual(table.ColumnDefinitions,
		convertor.Columns) {
		t.Errorf("got %+v", table)
	}
}

// TestConvertToTable_EmptyList: kubectl shows "No resources found" for a table with rows: [], and cannot read rows: null.
func TestConvertToTable_EmptyList(t *testing.T) {
	if table := convert(t, &cluster.ManagedClusterSetList{}, nil); table.Rows == nil || len(table.Rows) > 0 {
		t.Errorf("rows %+v", table.Rows)
	}
}

func TestConvertToTable_WithoutHeaders(t *testing.T) {
	if table := convert(t, set("a"), &metav1.TableOptions{NoHeaders: true}); len(table.ColumnDefinitions) > 0 {
		t.Errorf("columns %+v", table.ColumnDefinitions)
	}
}

func TestConvertToTable_RejectsOtherKind(t *testing.T) {
	for _, object := range []runtime.Object{
		&cluster.ManagedCluster{}, &cluster.ManagedClusterList{Items: make([]cluster.ManagedCluster, 1)},
	} {
		if _, err := convertor.ConvertToTable(t.Context(), object, nil); err == nil {
			t.Errorf("%T has a table of sets", object)
		}
	}
}

func TestCells(t *testing.T) {
	conditions := []metav1.Condition{{Type: "Bound", Status: "Unknown", Reason: "Why"}}
	aged := &metav1.ObjectMeta{CreationTimestamp: metav1.NewTime(time.Now().Add(-49 * time.Hour))}
	for name, c := range map[string]struct{ got, want any }{
		"a condition":        {ConditionCell(conditions, "Bound"), "Unknown"},
		"no such condition":  {ConditionCell(conditions, "Empty"), ""},
		"a reason":           {ReasonCell(conditions, "Bound"), "Why"},
		"no such reason":     {ReasonCell(conditions, "Empty"), ""},
		"no conditions":      {ConditionCell(nil, "Bound"), ""},
		"an age":             {AgeCell(aged), "2d1h"},
		"never been created": {AgeCell(&metav1.ObjectMeta{}), "<unknown>"},
	} {
		if c.got != c.want {
			t.Errorf("%s: got %v, want %v", name, c.got, c.want)
		}
	}
}
