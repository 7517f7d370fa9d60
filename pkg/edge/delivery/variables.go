// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	edgev1alpha1 "github.com/clusterhub/clusterhub/pkg/apis/edge/v1alpha1"
	"github.com/clusterhub/clusterhub/pkg/constraint"
)

// Variables returns the variables of a service of an organization, as text, with the inputs of a policy or pattern of a namespace. Inputs that the
// service does not define are ignored; of several inputs for one variable, the last is used.
func Variables(org string, s *edgev1alpha1.EdgeServiceSpec, namespace string, inputs []edgev1alpha1.ServiceInput) (map[string]string, error) {
	if len(s.UserInput) == 0 {
		return nil, nil
	}
	given := map[string]edgev1alpha1.Value{}
	for i := range inputs {
		meant, err := isFor(&inputs[i], org, s, namespace)
		if err != nil {
			return nil, err
		}
		for _, one := range inputs[i].Inputs {
			if meant {
				given[one.Name] = one.Value
			}
		}
	}
	values := map[string]string{}
	var missing []string
	for i := range s.UserInput {
		v := &s.UserInput[i]
		if problems := validation.IsConfigMapKey(v.Name); len(problems) > 0 {
			return nil, &Fault{Reason: ReasonInputInvalid, Message: fmt.Sprintf("the variable %.100q of service %s cannot be a key of a ConfigMap: use letters, digits, '-', '_' and '.'", v.Name, s.URL)}
		}
		value, set := given[v.Name]
		switch {
		case set:
			text, err := textOf(v, value)
			if err != nil {
				return nil, &Fault{Reason: ReasonInputInvalid, Message: fmt.Sprintf("the variable %s of service %s: %v", v.Name, s.URL, err)}
			}
			values[v.Name] = text
		case v.DefaultValue != nil:
			values[v.Name] = *v.DefaultValue
		default:
			missing = append(missing, v.Name)
		}
	}
	if len(missing) > 0 {
		return nil, &Fault{Reason: ReasonInputMissing, Message: fmt.Sprintf("variables of service %s have no value and no default: set them in userInput: %s", s.URL, strings.Join(missing, ", "))}
	}
	return values, nil
}

// isFor reports whether an input is for this version of the service.
func isFor(in *edgev1alpha1.ServiceInput, org string, s *edgev1alpha1.EdgeServiceSpec, namespace string) (bool, error) {
	of := in.ServiceOrgid
	if of == "" {
		of = namespace
	}
	if of != org || in.ServiceUrl != s.URL || in.ServiceArch != "" && in.ServiceArch != "*" && in.ServiceArch != s.Arch {
		return false, nil
	}
	if in.ServiceVersionRange == "" {
		return true, nil
	}
	span, err := constraint.ParseVersionRange(in.ServiceVersionRange)
	if err != nil {
		return false, &Fault{Reason: ReasonInputInvalid, Message: fmt.Sprintf("serviceVersionRange %q of userInput: %v", in.ServiceVersionRange, err)}
	}
	return span.Contains(s.Version), nil
}

// textOf formats a value of a variable for its containers. An error does not contain the value.
func textOf(v *edgev1alpha1.Variable, value edgev1alpha1.Value) (string, error) {
	kind := v.Type
	if kind == "" {
		kind = edgev1alpha1.PropertyString
	}
	switch {
	case value.Type == edgev1alpha1.ValueString && (kind == edgev1alpha1.PropertyString || kind == edgev1alpha1.PropertyVersion || kind == edgev1alpha1.PropertyList):
		return value.String, nil
	case value.Type == edgev1alpha1.ValueNumber && (kind == edgev1alpha1.PropertyFloat || kind == edgev1alpha1.PropertyInt && value.Number == math.Trunc(value.Number)):
		return strconv.FormatFloat(value.Number, 'f', -1, 64), nil
	case value.Type == edgev1alpha1.ValueBoolean && kind == edgev1alpha1.PropertyBoolean:
		return strconv.FormatBool(value.Boolean), nil
	case value.Type == edgev1alpha1.ValueList && kind == edgev1alpha1.PropertyList:
		return strings.Join(value.List, " "), nil
	}
	return "", fmt.Errorf("its type is %s, and userInput has a value of another type", kind)
}
