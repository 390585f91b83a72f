"""Whole rounds of judged audits as they were recorded elsewhere: folders of judgements, ground truths and reviews."""
