// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package table turns objects into the tables that kubectl prints.
package table

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metatable "k8s.io/apimachinery/pkg/api/meta/table"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/rest"
)

// Convertor is a rest.TableConvertor for one kind: its columns, and the cells of one object.
type Convertor[T runtime.Object] struct {
	Columns []metav1.TableColumnDefinition
	Cells   func(T) []any
}

var _ rest.TableConvertor = Convertor[runtime.Object]{}

// ConvertToTable implements rest.TableConvertor.
func (c Convertor[T]) ConvertToTable(_ context.Context, object, options runtime.Object) (*metav1.Table, error) {
	result := &metav1.Table{}
	if o, ok := options.(*metav1.TableOptions); !ok || !o.NoHeaders {
		result.ColumnDefinitions = c.Columns
	}
	add := func(object runtime.Object) error {
		typed, ok := object.(T)
		if !ok {
			return fmt.Errorf("no table for %T", object)
		}
		result.Rows = append(result.Rows, metav1.TableRow{Cells: c.Cells(typed), Object: runtime.RawExtension{Object: object}})
		return nil
	}
	if list, err := meta.ListAccessor(object); err == nil && meta.IsListType(object) {
		result.ResourceVersion = list.GetResourceVersion()
		result.Continue = list.GetContinue()
		result.RemainingItemCount = list.GetRemainingItemCount()
		result.Rows = make([]metav1.TableRow, 0, meta.LenList(object))
		return result, meta.EachListItem(object, add)
	}
	if m, err := meta.CommonAccessor(object); err == nil {
		result.ResourceVersion = m.GetResourceVersion()
	}
	return result, add(object)
}

// Name returns the first column of every table.
func Name() metav1.TableColumnDefinition {
	return metav1.TableColumnDefinition{Name: "Name", Type: "string", Format: "name", Description: metav1.ObjectMeta{}.SwaggerDoc()["name"]}
}

// Age returns the column for the time since an object was created. Its cell is made by AgeCell.
func Age() metav1.TableColumnDefinition {
	return metav1.TableColumnDefinition{Name: "Age", Type: "date", Description: metav1.ObjectMeta{}.SwaggerDoc()["creationTimestamp"]}
}

// AgeCell returns the cell of an Age column: the elapsed time, as kubectl formats it.
func AgeCell(m *metav1.ObjectMeta) any {
	return metatable.ConvertToHumanReadableDateType(m.CreationTimestamp)
}

// ConditionCell returns the status of a condition, or an empty cell if the condition does not exist.
func ConditionCell(conditions []metav1.Condition, conditionType string) any {
	if c := meta.FindStatusCondition(conditions, conditionType); c != nil {
		return string(c.Status)
	}
	return ""
}

// ReasonCell returns the reason of a condition, or an empty cell if the condition does not exist.
func ReasonCell(conditions []metav1.Condition, conditionType string) any {
	if c := meta.FindStatusCondition(conditions, conditionType); c != nil {
		return c.Reason
	}
	return ""
}

// Wide returns a column that kubectl shows only with -o wide.
func Wide(column metav1.TableColumnDefinition) metav1.TableColumnDefinition {
	column.Priority = 1
	return column
}

// NameAndAge returns the table of a kind without further columns.
func NameAndAge[T interface {
	runtime.Object
	metav1.Object
}]() Convertor[T] {
	return Convertor[T]{
		Columns: []metav1.TableColumnDefinition{Name(), Age()},
		Cells: func(object T) []any {
			return []any{object.GetName(), AgeCell(&metav1.ObjectMeta{CreationTimestamp: object.GetCreationTimestamp()})}
		},
	}
}
