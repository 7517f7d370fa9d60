// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"regexp"
	"time"

	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/clusterhub/clusterhub/pkg/apis/cluster"
)

var (
	rolloutTypes    = []cluster.RolloutType{cluster.All, cluster.Progressive, cluster.ProgressivePerGroup}
	rolloutDeadline = regexp.MustCompile(`^(([0-9]+[hms])+|None)$`)
	numberOrPercent = regexp.MustCompile(`^((100|[0-9]{1,2})%|[0-9]+)$`)
)

// ValidateRolloutStrategy checks in which steps something is rolled out.
func ValidateRolloutStrategy(s *cluster.RolloutStrategy, path *field.Path) field.ErrorList {
	errs := oneOf(s.Type, rolloutTypes, path.Child("type"))
	if s.All != nil {
		errs = append(errs, validateRolloutConfig(&s.All.RolloutConfig, path.Child("all"))...)
	}
	if p := s.Progressive; p != nil {
		at := path.Child("progressive")
		errs = append(errs, validateRolloutConfig(&p.RolloutConfig, at)...)
		errs = append(errs, validateNumberOrPercent(p.MaxConcurrency, at.Child("maxConcurrency"))...)
	}
	if p := s.ProgressivePerGroup; p != nil {
		at := path.Child("progressivePerGroup")
		errs = append(errs, validateRolloutConfig(&p.RolloutConfig, at)...)
	}
	return errs
}

func validateRolloutConfig(c *cluster.RolloutConfig, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if c.MinSuccessTime.Duration < 0 {
		errs = append(errs, field.Invalid(path.Child("minSuccessTime"), c.MinSuccessTime.String(), "must be 0 or more"))
	}
	errs = append(errs, validateDeadline(c.ProgressDeadline, path.Child("progressDeadline"))...)
	return append(errs, validateNumberOrPercent(c.MaxFailures, path.Child("maxFailures"))...)
}

func validateDeadline(deadline string, path *field.Path) field.ErrorList {
	_, err := time.ParseDuration(deadline)
	if deadline != "None" && (err != nil || !rolloutDeadline.MatchString(deadline)) {
		return field.ErrorList{field.Invalid(path, deadline, "must be None, or hours, minutes and seconds, such as 30m or 1h30m")}
	}
	return nil
}

func validateNumberOrPercent(value intstr.IntOrString, path *field.Path) field.ErrorList {
	if value.Type == intstr.Int {
		return apivalidation.ValidateNonnegativeField(int64(value.IntVal), path)
	}
	if len(value.StrVal) > maxGroupLength {
		return field.ErrorList{field.TooLong(path, "" /* it is long */, maxGroupLength)}
	}
	if !numberOrPercent.MatchString(value.StrVal) {
		return field.ErrorList{field.Invalid(path, value.StrVal, `must be a number, 0 or more, or a percentage from "0%" to "100%"`)}
	}
	return nil
}
