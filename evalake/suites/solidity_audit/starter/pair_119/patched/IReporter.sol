// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.20;

interface IReporter {
    /// @return price Cash per unit of the pledge, scaled by 1e18.
    /// @return reportedAt Time of the report.
    function latest() external view returns (uint256 price, uint256 reportedAt);
}
